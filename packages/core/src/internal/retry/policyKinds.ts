/**
 * The kinds of what a retry policy takes: the options of its functions, and a policy that is complete, which a binding takes from code of any origin.
 */
import * as Choices from "../../Choices.ts"
import * as Kinds from "../../Kinds.ts"
import * as Ranges from "../../Ranges.ts"
import * as TopicName from "../../TopicName.ts"
import { isObject } from "../base/properties.ts"
import { shown } from "../base/shown.ts"

/** The end of a topic's name. It has the rules of a whole one: an empty one would make the topic `{topic}.`. */
export const topicSuffix: Kinds.Kind = (path, found) => {
  const reason = typeof found === "string" ? TopicName.illegal(found) : "it is no text"
  return reason === undefined ? [] : [{ path, found: shown(found), allowed: `the end of a topic name: ${reason}` }]
}

/** The lists of `Classifier.ExceptionLists`, as far as they are lists. Their entries are checked with the binding, which knows its tiers. */
export const exceptionLists = {
  retryableExceptions: Kinds.listOf(() => [], "a list of patterns"),
  nonRetryableExceptions: Kinds.listOf(() => [], "a list of patterns"),
  skipToTierMapping: Kinds.make(
    "a Map, or an object, from patterns to tiers",
    (value) => isObject(value) && (value instanceof Map || Object.entries(value).length >= 0)
  )
} as const

const { blocking, tier, maxElapsedTime, partitions, replicationFactor } = Ranges.retry

/** The options of `RetryPolicy.tiered` that have settings of their own. */
export const tieredParts = { blocking: Kinds.object, tiers: Kinds.listOf(() => []) } as const

/** The other options of `RetryPolicy.tiered`. */
export const tieredOptions = {
  equalDelays: Kinds.oneOf(Choices.retry.equalDelays),
  consumer: Kinds.oneOf(Choices.retry.consumer),
  maxElapsedTime,
  partitions,
  replicationFactor,
  ...exceptionLists
} as const

/** The names of the options of `RetryPolicy.tiered`. */
export const tieredNames = Object.keys({ ...tieredParts, ...tieredOptions })

/** The names of the settings of a tier. */
export const tierNames = [...Object.keys(tier), "topicSuffix"]

const millis = (range: Ranges.Range): Ranges.Range => ({ ...range, kind: "whole" })

const wholeMillis: Kinds.Kind = (path, found) => Ranges.problems(path, found ?? null, millis(tier.delay))

/** A complete policy, as the functions of `RetryPolicy` make it. */
export const complete: Kinds.Kind = Kinds.struct(
  { maxElapsedMillis: millis(maxElapsedTime), partitions, replicationFactor, ...exceptionLists },
  {
    blocking: Kinds.struct(
      {},
      {
        maxAttempts: blocking.maxAttempts,
        initialBackoffMillis: millis(blocking.initialBackoff),
        multiplier: blocking.multiplier,
        maxBackoffMillis: millis(blocking.maxBackoff),
        jitter: blocking.jitter
      }
    ),
    tiers: Kinds.listOf(
      Kinds.struct(
        { topicSuffix, laterDelaysMillis: Kinds.listOf(wholeMillis) },
        {
          delayMillis: millis(tier.delay),
          maxAttempts: tier.maxAttempts,
          concurrency: tier.concurrency,
          sharesTopic: Kinds.flag
        }
      )
    ),
    consumer: Kinds.oneOf(Choices.retry.consumer)
  },
  "a retry policy, such as RetryPolicy.tiered()"
)
