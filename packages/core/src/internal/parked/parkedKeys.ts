/**
 * The parked keys of one binding, as operators see them and decide about them.
 */
import * as Effect from "effect/Effect"
import { NotOrderedPerKey, type ParkedKeys } from "../../ParkedKeys.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Decisions from "./decisions.ts"
import * as ParkedList from "./parkedList.ts"

/** Fails for a binding that does not keep the order of each key. */
export const make = (options: Decisions.DecisionOptions): Effect.Effect<ParkedKeys, NotOrderedPerKey> => {
  const { orderingMode } = options.definition
  if (orderingMode !== "PER_KEY")
    return Effect.fail(new NotOrderedPerKey({ binding: BindingKey.label(options.definition), orderingMode }))
  return Effect.succeed({
    list: Effect.map(ParkedList.list(options), (all) => all.map(({ key }) => key)),
    retry: Decisions.decide(options, "retry"),
    skip: Decisions.decide(options, "skip")
  })
}
