/** How long a failed event waits before its next delivery. */
import { Duration, Random } from "effect"

/** Milliseconds to wait after the nth failed delivery, n counted from 1; `random` is in [0, 1). */
export type EventRetryPolicy = (attempts: number, random: number) => number

/** `min(max, base · 2^(n-1) · jitter)` with jitter in [0.5, 1.5): finite and within max for every n (ruling 44). */
export const exponential = (
  base: Duration.Input = "200 millis",
  max: Duration.Input = "60 seconds"
): EventRetryPolicy => {
  const baseMillis = Duration.toMillis(Duration.fromInputUnsafe(base))
  const maxMillis = Duration.toMillis(Duration.fromInputUnsafe(max))
  // Beyond 2^1000 the power would be infinite, and 0 · infinity is no number.
  return (attempts, random) =>
    Math.min(maxMillis, baseMillis * 2 ** Math.min(Math.max(attempts, 1) - 1, 1000) * (0.5 + random))
}

/** The same wait every time. */
export const fixed = (delay: Duration.Input): EventRetryPolicy => {
  const millis = Duration.toMillis(Duration.fromInputUnsafe(delay))
  return () => millis
}

/** The seed's default: 200 ms doubling to at most a minute. */
export const defaultPolicy: EventRetryPolicy = exponential()

/** The random number that `RetryPolicy` takes. */
export const random = Random.next
