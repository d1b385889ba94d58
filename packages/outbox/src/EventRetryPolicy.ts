/** Retry policies: how long a failed event waits before its next delivery (outbox seed §12). */
import { Ranges } from "@eventbus/core"
import type * as Duration from "effect/Duration"
import { refuse, within } from "./internal/base/options.ts"
import * as OutboxRanges from "./OutboxRanges.ts"

/**
 * Returns the milliseconds to wait after the nth failed delivery. `attempts` is n, counted from 1; `random` is at least 0 and below 1.
 * A result that is not finite counts as one minute, a negative one as 0.
 */
export type EventRetryPolicy = (attempts: number, random: number) => number

/**
 * Waits `min(max, base · 2^(n-1) · jitter)`, with jitter from 0.5 to below 1.5. The wait is finite and at most `max` for every n
 * (outbox seed §12, ruling 44). Defaults: base 200 ms, max 1 minute. Throws `InvalidOutboxConfig` for a value that is no duration of 0 or more.
 */
export const exponential = (
  base: Duration.Input = "200 millis",
  max: Duration.Input = "60 seconds"
): EventRetryPolicy => {
  refuse(
    "EventRetryPolicy.exponential",
    within("base", base, OutboxRanges.retryPolicy),
    within("max", max, OutboxRanges.retryPolicy)
  )
  const baseMillis = Ranges.millisOf(base)
  const maxMillis = Ranges.millisOf(max)
  // Beyond 2^1000 the power would be infinite, and 0 · infinity is not a number.
  return (attempts, random) =>
    Math.min(maxMillis, baseMillis * 2 ** Math.min(Math.max(attempts, 1) - 1, 1000) * (0.5 + random))
}

/** Waits the same time after every failure. Throws `InvalidOutboxConfig` for a value that is no duration of 0 or more. */
export const fixed = (delay: Duration.Input): EventRetryPolicy => {
  refuse("EventRetryPolicy.fixed", within("delay", delay, OutboxRanges.retryPolicy))
  const millis = Ranges.millisOf(delay)
  return () => millis
}
