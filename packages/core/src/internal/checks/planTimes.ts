/**
 * Computes from the settings alone when the attempts of a record that always fails take place.
 */

import type { RetryPolicy } from "../../RetryPolicy.ts"
import * as Backoff from "../retry/backoff.ts"
import { delayMillis } from "../retry/tierDelays.ts"
import type { Tiers } from "../retry/tiers.ts"
import type { PlannedDelivery, RetryTimes, TimeRange } from "./planTypes.ts"

/** A plan lists this many deliveries. More tell a reader nothing new. */
const maxListed = 100

export const retryTimes = (source: string, retry: RetryPolicy, tiers: Tiers, budgetMillis: number): RetryTimes => {
  const { blocking } = retry
  const inPlace: TimeRange = {
    earliestMillis: Backoff.totalMillis(blocking, 0),
    latestMillis: Backoff.worstCaseTotalMillis(blocking)
  }
  const listed: Array<PlannedDelivery> = []
  let deliveriesInAll = 0
  let waits = 0
  /** When delivery number `done` (from 0) starts, after `waited` milliseconds in retry topics. */
  const startOf = (done: number, waited: number): TimeRange => ({
    earliestMillis: waited + done * inPlace.earliestMillis,
    latestMillis: waited + done * inPlace.latestMillis
  })
  /** Counts deliveries that wait equally long, and lists them while there is room. */
  const add = (tier: number, topic: string, first: number, count: number, wait: number) => {
    for (let index = 0; index < count && listed.length < maxListed; index++) {
      const start = startOf(deliveriesInAll + index, waits + (index + 1) * wait)
      const end = plus(start, inPlace)
      listed.push({ tier, topic, delivery: first + index, attempts: blocking.maxAttempts, first: start, last: end })
    }
    deliveriesInAll += count
    waits += count * wait
  }
  add(0, source, 1, 1, 0)
  /** How many more deliveries with this wait begin within `maxElapsedTime`, when no wait is longer than it has to be. */
  const inTime = (wait: number): number => {
    const { maxElapsedMillis = Number.POSITIVE_INFINITY } = retry
    const left = maxElapsedMillis - waits - (deliveriesInAll - 2) * inPlace.earliestMillis
    const each = wait + inPlace.earliestMillis
    return left === Number.POSITIVE_INFINITY || each === 0 ? Number.POSITIVE_INFINITY : Math.floor(left / each)
  }
  for (let tier = 1; tier <= tiers.count; tier++) {
    const { topic, delaysMillis } = tiers.topicOf(tier)
    const deliveries = tiers.deliveries(tier)
    for (let delivery = 1; delivery <= deliveries; ) {
      const wait = delayMillis(delaysMillis, delivery)
      const alike = delivery < delaysMillis.length ? 1 : deliveries - delivery + 1
      const count = Math.max(0, Math.min(alike, inTime(wait)))
      add(tier, topic, delivery, count, wait)
      if (count < alike) break
      delivery += count
    }
  }
  return {
    deliveries: listed,
    deliveriesInAll,
    attempts: deliveriesInAll * blocking.maxAttempts,
    exhausted: startOf(deliveriesInAll, waits),
    longestMillis: waits + deliveriesInAll * budgetMillis
  }
}

const plus = (a: TimeRange, b: TimeRange): TimeRange => ({
  earliestMillis: a.earliestMillis + b.earliestMillis,
  latestMillis: a.latestMillis + b.latestMillis
})
