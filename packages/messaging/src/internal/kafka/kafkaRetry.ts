/** A retry of messages as the connector's retry policy, and the names of its topics. */
import * as RetryPolicy from "@eventbus/core/RetryPolicy"
import type * as TopicName from "@eventbus/core/TopicName"
import type { MessageRetry } from "../../MessageRetry.ts"

/** One delivery in a retry topic after each wait; or, without retry topics, attempts in place with the same waits. */
export const policyOf = (retry: MessageRetry): RetryPolicy.RetryPolicy =>
  retry.retryTopicsEnabled
    ? RetryPolicy.tiered({
        blocking: { maxAttempts: 1 },
        tiers: retry.waits.map((delay) => ({ delay, maxAttempts: 1 })),
        equalDelays: "share"
      })
    : RetryPolicy.blocking({
        maxAttempts: retry.maxAttempts,
        initialBackoff: retry.initialIntervalMillis,
        multiplier: retry.multiplier,
        maxBackoff: retry.maxIntervalMillis,
        jitter: 0
      })

/** `{topic}-retry`, and `{topic}-retry-{n}` for the further waits of a retry; `{topic}-dlq`. */
export const naming: TopicName.NamingStrategy = {
  name: "messaging",
  retry: ({ topic }, tier) => (tier === 1 ? `${topic}-retry` : `${topic}-retry-${tier}`),
  deadLetter: ({ topic }) => `${topic}-dlq`
}

const derived = /-(?:retry(?:-\d+)?|dlq)$/

/** The topic that a name is derived from, or the name itself. */
export const sourceOf = (topic: string, sources: ReadonlySet<string>): string => {
  if (sources.has(topic)) return topic
  const source = topic.replace(derived, "")
  return sources.has(source) ? source : topic
}
