/** A retry of messages as the connector's retry policy, and the names of its topics. */
import * as RetryPolicy from "@eventbus/core/RetryPolicy"
import type * as TopicName from "@eventbus/core/TopicName"
import type { Naming } from "../../ConsumerDescription.ts"
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

/** `{topic}-retry`, and `{topic}-retry-{n}` for the further waits of a retry; `{topic}-dlq`. With the group behind the topic, where groups share it. */
export const namings: Readonly<Record<Naming, TopicName.NamingStrategy>> = {
  topic: namingBy("topic", ({ topic }) => topic),
  group: namingBy("group", ({ topic, groupId }) => `${topic}-${groupId}`)
}

function namingBy(name: string, prefix: (source: TopicName.Source) => string): TopicName.NamingStrategy {
  return {
    name: `messaging by ${name}`,
    retry: (source, tier) => (tier === 1 ? `${prefix(source)}-retry` : `${prefix(source)}-retry-${tier}`),
    deadLetter: (source) => `${prefix(source)}-dlq`
  }
}

const derived = /-(?:retry(?:-\d+)?|dlq)$/

/** The topic of a consumer that a name is derived from, or the name itself. */
export const sourceOf = (name: string, sources: ReadonlySet<string>, groupId: string): string => {
  if (sources.has(name)) return name
  const prefix = name.replace(derived, "")
  if (sources.has(prefix)) return prefix
  const ofGroup = prefix.endsWith(`-${groupId}`) ? prefix.slice(0, -groupId.length - 1) : prefix
  return sources.has(ofGroup) ? ofGroup : name
}
