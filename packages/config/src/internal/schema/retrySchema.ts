/** The settings of retries. */
import { Choices, Defaults, Ranges } from "@eventbus/core"
import * as Schema from "effect/Schema"
import * as Durations from "./durations.ts"
import { decimal, duration, oneOf, section, text, topicName, whole, withDefault } from "./leaves.ts"
import { alias } from "./otherNames.ts"

/** A key that may be absent, without a value then. */
const optional = Schema.optionalKey

/** Attempts in place. */
export const Blocking = section("Attempts inside one delivery.", {
  maxAttempts: whole(
    "Handler calls in all, the first included; 1 means no retries.",
    Ranges.retry.blocking.maxAttempts
  ).pipe(withDefault(Defaults.retry.blocking.maxAttempts)),
  initialBackoffMs: duration("Wait after the first failure.", Ranges.retry.blocking.initialBackoff).pipe(
    withDefault(Defaults.retry.blocking.initialBackoffMillis)
  ),
  multiplier: decimal("Factor from one wait to the next.", Ranges.retry.blocking.multiplier).pipe(
    withDefault(Defaults.retry.blocking.multiplier)
  ),
  maxBackoffMs: duration("Longest single wait, jitter included.", Ranges.retry.blocking.maxBackoff).pipe(
    withDefault(Defaults.retry.blocking.maxBackoffMillis)
  ),
  jitter: decimal("A wait varies by up to this share of itself.", Ranges.retry.blocking.jitter).pipe(
    withDefault(Defaults.retry.blocking.jitter)
  )
})

/** A retry tier in full. */
export const Tier = section("One retry topic.", {
  delayMs: duration(
    "How long a record waits before each delivery in this tier, or before the first one with a multiplier.",
    Ranges.retry.tier.delay
  ),
  multiplier: decimal("Factor from one wait to the next.", Ranges.retry.tier.multiplier).pipe(
    withDefault(Defaults.retry.tier.multiplier)
  ),
  maxDelayMs: optional(
    duration("Longest single wait, delayMs or more. Default: as the multiplier says.", Ranges.retry.tier.maxDelay)
  ),
  maxAttempts: whole("Deliveries in this tier.", Ranges.retry.tier.maxAttempts).pipe(
    withDefault(Defaults.retry.tier.maxAttempts)
  ),
  topicSuffix: optional(topicName("Name of its topic behind `{topic}.`. Default: what `naming` says, `retry-{n}`.")),
  concurrency: whole("Handlers that run at once in this tier, in one process.", Ranges.retry.tier.concurrency).pipe(
    withDefault(Defaults.retry.tier.concurrency)
  )
})

const defaultDelays = Defaults.retry.tierDelaysMillis.RELAXED_IN_RETRY.map(Durations.format).join(", ")

const errorPattern = text(
  "An error's class name or tag, also qualified (`java.net.SocketTimeoutException`), or an expression on its message: `/timed? out/i`."
)

/** Attempts in place, retry topics and exception lists. */
export const Retry = section("How a failing record is tried again.", {
  blocking: Blocking.pipe(withDefault({}), alias("tier0")),
  tiers: optional(
    Schema.Array(
      Schema.Union([duration("The tier's delay; the rest has its defaults.", Ranges.retry.tier.delay), Tier])
    ).annotate({
      description: `Retry topics, in the order in which a record passes through them, by their delay or in full. Default: ${defaultDelays}; none with orderingMode STRICT.`
    })
  ),
  retryableExceptions: Schema.Array(errorPattern)
    .annotate({ description: "Errors that are tried again in place. Default: all." })
    .pipe(withDefault([])),
  nonRetryableExceptions: Schema.Array(errorPattern)
    .annotate({ description: "Errors that go to the dead letter topic at once. Default: none." })
    .pipe(withDefault([])),
  skipToTierMapping: Schema.Record(Schema.String, whole("The tier that follows the attempts in place, from 1."))
    .annotate({ description: "Error to the tier that it goes to. Default: none." })
    .pipe(withDefault({})),
  maxElapsedTimeMs: optional(
    duration(
      "A record whose next delivery would be due later than this after its failure in the main topic is dead-lettered. Default: no limit of time.",
      Ranges.retry.maxElapsedTime
    )
  ),
  equalDelays: oneOf("`share`: neighbouring tiers of the same delay use one topic.", Choices.retry.equalDelays).pipe(
    withDefault(Defaults.retry.equalDelays)
  ),
  consumer: oneOf(
    "Whether the tiers share the main topic's group, or have `{groupId}.retry`.",
    Choices.retry.consumer
  ).pipe(withDefault(Defaults.retry.consumer)),
  partitions: optional(
    whole("Partitions of a retry topic that is made. Default: as many as the source.", Ranges.retry.partitions)
  ),
  replicationFactor: optional(
    whole("Replication factor of a retry topic that is made. Default: the source's.", Ranges.retry.replicationFactor)
  )
})
