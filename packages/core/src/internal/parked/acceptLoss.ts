/**
 * Accepts that stranded keys go on without the records that follow them. The acceptance is a record in each retry partition with such locks, behind them: whoever owns the unit finds it
 * for as long as the group has not passed the locks. It covers exactly what was read before it was written.
 */
import * as Effect from "effect/Effect"
import type { BrokerError } from "../../BrokerError.ts"
import { type AcceptLoss, StrandedKeysChanged } from "../../ParkedKeys.ts"
import * as OrderHeaders from "../record/orderHeaders.ts"
import * as Arguments from "../replay/arguments.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Decisions from "./decisions.ts"
import * as ParkedList from "./parkedList.ts"

export const make =
  (options: Decisions.DecisionOptions): AcceptLoss =>
  (expected, reason) =>
    Effect.gen(function* () {
      yield* Arguments.reason("acceptLoss", reason)
      if (!Number.isSafeInteger(expected) || expected < 1)
        return yield* Arguments.refuse("acceptLoss", "keys", expected, "a whole number, 1 or more")
      const stranded = (yield* ParkedList.list(options)).filter(({ key }) => key.state === "stranded")
      if (stranded.length !== expected) {
        const binding = BindingKey.label(options.definition)
        return yield* new StrandedKeysChanged({ binding, expected, found: stranded.length })
      }
      yield* write(options, stranded)
      for (const { key } of stranded) {
        const { topic, partition, offset } = key
        yield* options.onDecided({ at: { topic, partition, offset }, decision: { kind: "accept-loss", reason } })
      }
      return { keys: stranded.map(({ key }) => key) }
    })

const write = (
  { broker }: Decisions.DecisionOptions,
  stranded: ReadonlyArray<ParkedList.KeyInGroup>
): Effect.Effect<void, BrokerError> => {
  const first = new Map(
    stranded.map((each) => [`${each.key.topic} ${each.key.partition} ${each.strandedIn!.part}`, each])
  )
  return Effect.forEach(
    first.values(),
    (each) => {
      const { part, end } = each.strandedIn!
      return Decisions.send(broker, each, part, null, OrderHeaders.ofAcceptance(each.bond, end))
    },
    { discard: true }
  )
}
