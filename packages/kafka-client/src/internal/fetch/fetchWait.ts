/**
 * How long a node may hold a fetch that finds no data (Kafka: `fetch.max.wait.ms`). A node answers one request after the other, so a partition that is
 * resumed meanwhile is fetched only after that answer.
 */
import type { OwnedPartition } from "../group/ownership.ts"

/** Kafka's default. While no partition can be resumed, nothing waits for the answer. */
const idleWaitMillis = 500
/** A shorter wait would cost more in requests than it saves in latency. */
const minWaitMillis = 5

/**
 * The wait of a fetch that is sent now to the node of these partitions, in milliseconds. While a partition may be resumed, the wait is `maxMillis` at
 * most, and no longer than the newest pause has lasted so far. A paused partition is resumed when its buffer is half empty; the other half then lasts
 * about as long as the pause did, so the buffer does not run dry.
 */
export const fetchWaitMillis = (owned: ReadonlyArray<OwnedPartition>, maxMillis: number, nowMillis: number): number => {
  let wait = Math.max(idleWaitMillis, maxMillis)
  for (const { phase, pausedMillis } of owned) {
    if (pausedMillis !== undefined) wait = Math.min(wait, maxMillis, Math.max(minWaitMillis, nowMillis - pausedMillis))
    else if (phase !== "fetching") wait = Math.min(wait, maxMillis)
  }
  return Math.floor(wait)
}
