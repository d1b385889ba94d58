/**
 * The parked keys of one binding, as operators see them and decide about them.
 */
import * as Effect from "effect/Effect"
import { NotOrderedPerKey, type ParkedKeys } from "../../ParkedKeys.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as AcceptLoss from "./acceptLoss.ts"
import * as Decisions from "./decisions.ts"
import * as ParkedList from "./parkedList.ts"

export interface ParkedOptions extends Decisions.DecisionOptions {
  /** Whether the binding can have units. One that was `PER_KEY` before may still have parked keys. */
  readonly hasUnits: boolean
}

/** Fails for a binding that keeps no order of keys through retry topics. */
export const make = (options: ParkedOptions): Effect.Effect<ParkedKeys, NotOrderedPerKey> => {
  const { definition, hasUnits } = options
  if (!hasUnits) {
    const { orderingMode } = definition
    return Effect.fail(new NotOrderedPerKey({ binding: BindingKey.label(definition), orderingMode }))
  }
  return Effect.succeed({
    orderingMode: definition.orderingMode,
    list: Effect.map(ParkedList.list(options), (all) => all.map(({ key }) => key)),
    retry: Decisions.decide(options, "retry"),
    skip: Decisions.decide(options, "skip"),
    acceptLoss: AcceptLoss.make(options)
  })
}
