/**
 * The operations on the transforms of a binding, over the connector.
 */
import { DeadLetterSelection, type EventBusConnector } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { DeadLetterNotFound } from "../../AdminError.ts"
import type { AdminTransforms } from "../../AdminTransforms.ts"
import * as AnswersOf from "../answersOf.ts"
import type { Letters } from "../lettersOfTopic.ts"
import type { Shown } from "../masking.ts"
import { transformedOf } from "./transformedOf.ts"

const defaultCount = 5

type Snapshots = Pick<EventBusConnector.EventBusConnector["Service"], "snapshot">

export const make = (connector: Letters & Snapshots, shown: Shown): Omit<AdminTransforms, "transforms"> => ({
  transformed: Effect.fnUntraced(function* (name, position, transform, { payload = false } = {}) {
    const letters = yield* connector.deadLetters(name)
    const [found] = yield* letters.transformed([position], transform)
    if (found !== undefined) return transformedOf(found, transform, shown(payload))
    const binding = AnswersOf.keyOf(yield* connector.snapshot(name))
    return yield* new DeadLetterNotFound({ binding, position: DeadLetterSelection.formatPosition(position) })
  }),
  planSample: Effect.fnUntraced(function* (name, id, { payload = false, count = defaultCount } = {}) {
    const { sample, transform } = yield* Effect.flatMap(connector.runs(name), (runs) => runs.getPlan(id))
    if (transform === undefined)
      return { letters: [], note: "The plan has no transform: its copies have the bytes of their letters." }
    const letters = yield* connector.deadLetters(name)
    const found = yield* letters.transformed(sample.slice(0, count), transform)
    return { letters: found.map((each) => transformedOf(each, transform, shown(payload))) }
  })
})
