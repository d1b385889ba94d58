/**
 * How long a fetch waits for data (`fetch.max.wait.ms`). A node answers one request after the other: what is resumed meanwhile is fetched only when the one
 * that is out has ended.
 */
import type { Owned } from "../group/ownership.ts"

/** As Kafka has it: where nothing can be resumed, nobody waits for a fetch without data to end. */
const undisturbedMillis = 500
/** Asking more often would cost more than it brings. */
const leastMillis = 5

/**
 * What a fetch that is sent now waits, in milliseconds, with these partitions of its node: up to `maxMillis` where one may be resumed meanwhile, and no longer
 * than the last one that was paused has been so already. A buffer of many chunks takes as long to get half empty as the other half lasts, so that it does not
 * run dry in between.
 */
export const fetchWaitMillis = (owned: ReadonlyArray<Owned>, maxMillis: number, nowMillis: number): number => {
  let wait = Math.max(undisturbedMillis, maxMillis)
  for (const { phase, pausedMillis } of owned) {
    if (pausedMillis !== undefined) wait = Math.min(wait, maxMillis, Math.max(leastMillis, nowMillis - pausedMillis))
    else if (phase !== "fetching") wait = Math.min(wait, maxMillis)
  }
  return Math.floor(wait)
}
