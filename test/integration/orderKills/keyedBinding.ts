/**
 * The binding of the kill test: order per key through two retry topics. The consumer protocol refuses `PER_KEY`; there a failed record keeps its key in order as the guide says, by attempts
 * in place, in lanes by key.
 */
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Data, Effect } from "effect"
import * as Transport from "../../transport.ts"
import type { Step, Tenure } from "./effects.ts"
import { fateOf, handlerMillisOf } from "./keyedRecords.ts"

class Down extends Data.TaggedError("Down") {}
class Wrong extends Data.TaggedError("Wrong") {}

export const sessionMillis = 3_000

/** Whether failed records wait in retry topics, and their key is parked. */
export const parks = Transport.groupProtocol === "classic"

export const retryTopics = (topic: string): ReadonlyArray<string> =>
  parks ? [`${topic}.retry-1`, `${topic}.retry-2`] : []

const ordered = parks
  ? ({
      orderingMode: "PER_KEY",
      retry: RetryPolicy.tiered({
        blocking: { maxAttempts: 1 },
        tiers: [1_000, 1_500].map((delay) => ({ delay, maxAttempts: 1, concurrency: 16 }))
      })
    } as const)
  : { retry: RetryPolicy.blocking({ maxAttempts: 3, initialBackoff: 100 }) }

/** `write` gets each step in the moment in which it happens. The tier of an attempt in place is the number of attempts before it in its tenure. */
export const make = (topic: string, tenureOf: (place: string) => Tenure, write: (step: Step) => void) => {
  const failures = new Map<string, number>()
  return Binding.make(topic, {
    ...{ topic, groupId: topic, value: Serde.string, autoStartup: false },
    ...{ processingOrder: "key", ackMode: "MANUAL" },
    ...Transport.membership({ sessionTimeout: sessionMillis, heartbeatInterval: 500 }),
    ...ordered,
    handler: ({ deduplicationKey, value, tier: topicTier }) =>
      Effect.suspend(() => {
        const place = deduplicationKey.slice(topic.length + 1)
        const tenure = tenureOf(place)
        const attempt = `${tenure}/${place}`
        const tier = parks ? topicTier : (failures.get(attempt) ?? 0)
        const of = { tenure, place, tier }
        const n = Number(value)
        const fate = fateOf(n)
        write({ _tag: "Started", ...of })
        return Effect.flatMap(Effect.sleep(handlerMillisOf(n)), (): Effect.Effect<void, Down | Wrong> => {
          const fails = typeof fate === "string" || tier < fate
          write({ _tag: fails ? "Failed" : "Done", ...of })
          if (!fails) return Effect.void
          failures.set(attempt, tier + 1)
          return Effect.fail(fate === "at-once" ? new Wrong() : new Down())
        })
      }),
    onError: { Down: Route.retry, Wrong: Route.deadLetter("wrong") }
  })
}
