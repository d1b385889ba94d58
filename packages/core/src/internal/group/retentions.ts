/**
 * How long the sources of a binding with order per key keep their records, as the cluster says.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as SingleFlight from "../base/singleFlight.ts"
import * as SourceRetention from "../retry/sourceRetention.ts"

export interface Retentions {
  /** As it was found last; undefined while that is not known. */
  readonly of: (topic: string) => SourceRetention.SourceRetention | undefined
  /** Asks the cluster, unless it was asked within so many milliseconds. */
  readonly ask: (topic: string, withinMillis: number) => Effect.Effect<void>
}

/** No unit waits for longer than this before it begins. */
const answerMillis = 5_000

/** Requests run in the scope. `onUnknown` hears once of each topic whose configuration cannot be read. */
export const make = (
  broker: Broker["Service"],
  scope: Scope.Scope,
  onUnknown: (topic: string, error: BrokerError | undefined) => void
): Retentions => {
  const found = new Map<string, SourceRetention.SourceRetention>()
  const askedMillis = new Map<string, number>()
  const unknown = new Set<string>()
  const failed = (topic: string, error: BrokerError | undefined): void => {
    if (unknown.has(topic)) return
    unknown.add(topic)
    onUnknown(topic, error)
  }
  const look = (topic: string): Effect.Effect<void> =>
    Effect.flatMap(broker.admin, (admin) => admin.topicConfig(topic)).pipe(
      Effect.scoped,
      Effect.timeoutOption(answerMillis),
      Effect.match({
        onFailure: (error) => failed(topic, error),
        onSuccess: (answer) => {
          if (answer._tag === "None") return failed(topic, undefined)
          unknown.delete(topic)
          found.set(topic, SourceRetention.read(answer.value))
        }
      }),
      Effect.andThen(Effect.map(Clock.currentTimeMillis, (nowMillis) => void askedMillis.set(topic, nowMillis)))
    )
  const askAgain = SingleFlight.perKey(look, scope)
  return {
    of: (topic) => found.get(topic),
    ask: (topic, withinMillis) =>
      Effect.flatMap(Clock.currentTimeMillis, (nowMillis) => {
        const last = askedMillis.get(topic)
        return last !== undefined && Math.abs(nowMillis - last) < withinMillis ? Effect.void : askAgain(topic)
      })
  }
}
