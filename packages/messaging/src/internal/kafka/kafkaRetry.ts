/** A retry of messages as the connector's retry policy, and the names of its topics. */
import * as RetryPolicy from "@eventbus/core/RetryPolicy"
import type * as TopicName from "@eventbus/core/TopicName"
import type { Naming } from "../../ConsumerDescription.ts"
import type { MessageRetry } from "../../MessageRetry.ts"

/** All waits in one retry topic, each by the number of its delivery; or, without retry topics, attempts in place with the same waits. */
export const policyOf = (retry: MessageRetry): RetryPolicy.RetryPolicy =>
  retry.retryTopicsEnabled
    ? RetryPolicy.tiered({
        blocking: { maxAttempts: 1 },
        tiers: retry.waits.length === 0 ? [] : [growing(retry)]
      })
    : RetryPolicy.blocking({
        maxAttempts: retry.maxAttempts,
        initialBackoff: retry.initialIntervalMillis,
        multiplier: retry.multiplier,
        maxBackoff: retry.maxIntervalMillis,
        jitter: 0
      })

const growing = (retry: MessageRetry) => ({
  delay: retry.initialIntervalMillis,
  multiplier: retry.multiplier,
  maxDelay: retry.maxIntervalMillis,
  maxAttempts: retry.waits.length
})

/** `{topic}-retry` and `{topic}-dlq`. With the group behind the topic, where groups share it. */
export const namings: Readonly<Record<Naming, TopicName.NamingStrategy>> = {
  topic: namingBy("topic", ({ topic }) => topic),
  group: namingBy("group", ({ topic, groupId }) => `${topic}-${groupId}`)
}

function namingBy(name: string, prefix: (source: TopicName.Source) => string): TopicName.NamingStrategy {
  return {
    name: `messaging by ${name}`,
    retry: (source) => `${prefix(source)}-retry`,
    deadLetter: (source) => `${prefix(source)}-dlq`
  }
}

const derived = /-(?:retry|dlq)$/

/** The topic of a consumer that a name is derived from, or the name itself. */
export const sourceOf = (name: string, sources: ReadonlySet<string>, groupId: string): string => {
  if (sources.has(name)) return name
  const prefix = name.replace(derived, "")
  if (sources.has(prefix)) return prefix
  const ofGroup = prefix.endsWith(`-${groupId}`) ? prefix.slice(0, -groupId.length - 1) : prefix
  return sources.has(ofGroup) ? ofGroup : name
}
