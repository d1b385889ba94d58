/**
 * Measures durations correctly when the wall clock is set: by an operator, by NTP, or after the machine slept.
 *
 * Effect's `currentTimeMillis` and `currentTimeNanos` both follow the wall clock. Only the monotonic time tells how long something took.
 */
import type * as Clock from "effect/Clock"

/** Answers the whole milliseconds since this call, rounded down. */
export const stopwatch = (clock: Clock.Clock): (() => number) => {
  const began = clock.monotonicTimeNanosUnsafe()
  return () => Number((clock.monotonicTimeNanosUnsafe() - began) / 1_000_000n)
}

/** Answers by how many milliseconds the wall clock was set since the last call; negative when it was set back. Drift below one second counts as 0. */
export const adjustments = (clock: Clock.Clock): (() => number) => {
  let lastOffset = offset(clock)
  return () => {
    const now = offset(clock)
    const moved = now - lastOffset
    if (Math.abs(moved) < driftMillis) return 0
    lastOffset = now
    return moved
  }
}

/** Answers how many milliseconds the wall clock is behind the furthest offset that this function has seen. Drift below one second counts as 0. */
export const setBack = (clock: Clock.Clock): (() => number) => {
  let furthest = offset(clock)
  return () => {
    const now = offset(clock)
    furthest = Math.max(furthest, now)
    return furthest - now < driftMillis ? 0 : furthest - now
  }
}

/** The clocks drift apart by less than this without anybody setting one. */
const driftMillis = 1_000

const offset = (clock: Clock.Clock): number =>
  clock.currentTimeMillisUnsafe() - Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
