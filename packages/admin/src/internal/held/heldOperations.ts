/**
 * The operations on records that wait for the decision of an operator.
 */
import type { EventBusConnector } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { AdminHeld, HeldCommand } from "../../AdminHeld.ts"
import * as AnswersOf from "../answersOf.ts"
import type { Shown } from "../masking.ts"
import * as HeldAnswers from "./heldAnswers.ts"

type Connector = EventBusConnector.EventBusConnector["Service"]

export const make = (connector: Connector, shown: Shown): AdminHeld => {
  const decided = (command: EventBusConnector.DecisionCommand): HeldCommand =>
    Effect.fnUntraced(function* (name, { topic, partition, offset }, reason) {
      const { topic: main } = yield* connector.snapshot(name)
      yield* command(name, { topic: topic ?? main, partition, offset }, reason)
      return AnswersOf.summaryOf(yield* connector.snapshot(name))
    })
  return {
    held: (name, { payload = false } = {}) =>
      Effect.map(connector.snapshot(name), (snapshot) => HeldAnswers.heldOf(snapshot, shown(payload))),
    skip: decided(connector.skip),
    deadLetter: decided(connector.deadLetter)
  }
}
