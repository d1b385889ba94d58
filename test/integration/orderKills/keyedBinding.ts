/** The binding of the kill test: order per key through two retry topics. */
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Data, Effect } from "effect"
import type { Step } from "./effects.ts"
import { fateOf, handlerMillisOf } from "./keyedRecords.ts"

class Down extends Data.TaggedError("Down") {}
class Wrong extends Data.TaggedError("Wrong") {}

export const sessionMillis = 3_000

export const retryTopics = (topic: string): ReadonlyArray<string> => [`${topic}.retry-1`, `${topic}.retry-2`]

/** `write` gets each step in the moment in which it happens. */
export const make = (topic: string, write: (step: Omit<Step, "tenure">) => void) =>
  Binding.make(topic, {
    ...{ topic, groupId: topic, value: Serde.string, autoStartup: false },
    ...{ orderingMode: "PER_KEY", processingOrder: "key", ackMode: "MANUAL" },
    ...{ sessionTimeout: sessionMillis, heartbeatInterval: 500 },
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 1 },
      tiers: [1_000, 1_500].map((delay) => ({ delay, maxAttempts: 1, concurrency: 16 }))
    }),
    handler: ({ deduplicationKey, value, tier }) =>
      Effect.suspend(() => {
        const of = { place: deduplicationKey.slice(topic.length + 1), tier }
        const n = Number(value)
        const fate = fateOf(n)
        write({ _tag: "Started", ...of })
        return Effect.flatMap(Effect.sleep(handlerMillisOf(n)), (): Effect.Effect<void, Down | Wrong> => {
          const fails = typeof fate === "string" || tier < fate
          write({ _tag: fails ? "Failed" : "Done", ...of })
          if (!fails) return Effect.void
          return Effect.fail(fate === "at-once" ? new Wrong() : new Down())
        })
      }),
    onError: { Down: Route.retry, Wrong: Route.deadLetter("wrong") }
  })
