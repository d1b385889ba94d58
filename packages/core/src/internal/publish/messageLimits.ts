/** The `max.message.bytes` of topics, for the report of a copy that is too large. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Broker } from "../../Broker.ts"
import * as SingleFlight from "../base/singleFlight.ts"

/** The limit of a topic; undefined when the cluster does not say within a second. */
export type MessageLimits = (topic: string) => Effect.Effect<number | undefined>

/** An answer holds for a second: all copies that wait for a topic are refused again at about the same time. */
const holdMillis = 1_000

const ask = (broker: Broker["Service"], topic: string): Effect.Effect<number | undefined> =>
  Effect.flatMap(broker.admin, (admin) => admin.topicConfig(topic)).pipe(
    Effect.scoped,
    Effect.timeout("1 second"),
    Effect.map((config) => Number(config.get("max.message.bytes"))),
    Effect.map((bytes) => (Number.isNaN(bytes) ? undefined : bytes)),
    Effect.orElseSucceed(() => undefined)
  )

/** Requests run in the scope. */
export const make = (broker: Broker["Service"], scope: Scope.Scope): MessageLimits => {
  const answers = new Map<string, { readonly bytes: number | undefined; readonly atMillis: number }>()
  const limitOf = Effect.fnUntraced(function* (topic: string) {
    const last = answers.get(topic)
    if (last !== undefined && Math.abs((yield* Clock.currentTimeMillis) - last.atMillis) < holdMillis) return last.bytes
    const bytes = yield* ask(broker, topic)
    answers.set(topic, { bytes, atMillis: yield* Clock.currentTimeMillis })
    return bytes
  })
  return SingleFlight.perKey(limitOf, scope)
}
