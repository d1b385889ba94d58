/**
 * Durations in spite of a wall clock that is set: by an operator, by NTP, by a machine that slept.
 *
 * Effect's `currentTimeMillis` and `currentTimeNanos` both follow the wall clock; only the monotonic time says how long something took.
 */
import type { Clock } from "effect"

/** Whole milliseconds since now: one that has begun does not count. */
export const stopwatch = (clock: Clock.Clock): (() => number) => {
  const began = clock.monotonicTimeNanosUnsafe()
  return () => Number((clock.monotonicTimeNanosUnsafe() - began) / 1_000_000n)
}

/** By how much the wall clock was set since the last question (negative: back), as far as that is more than clocks drift apart by themselves. */
export const adjustments = (clock: Clock.Clock): (() => number) => {
  let known = offset(clock)
  return () => {
    const now = offset(clock)
    const moved = now - known
    if (Math.abs(moved) < driftMillis) return 0
    known = now
    return moved
  }
}

/** How far the wall clock is behind the furthest that it has been, seen from whoever asks. */
export const setBack = (clock: Clock.Clock): (() => number) => {
  let furthest = offset(clock)
  return () => {
    const now = offset(clock)
    furthest = Math.max(furthest, now)
    return furthest - now < driftMillis ? 0 : furthest - now
  }
}

const driftMillis = 1_000

const offset = (clock: Clock.Clock): number =>
  clock.currentTimeMillisUnsafe() - Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
