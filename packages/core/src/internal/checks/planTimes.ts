/**
 * Computes from the settings alone when the attempts of a record that always fails take place.
 */

import type { BackoffPolicy } from "../../RetryPolicy.ts"
import * as Backoff from "../retry/backoff.ts"
import type { Tiers } from "../retry/tiers.ts"
import type { PlannedDelivery, RetryTimes, TimeRange } from "./planTypes.ts"

/** A plan lists this many deliveries. More tell a reader nothing new. */
const maxListed = 100

export const retryTimes = (source: string, blocking: BackoffPolicy, tiers: Tiers, budgetMillis: number): RetryTimes => {
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
  const list = (tier: number, topic: string, delayMillis: number, deliveries: number) => {
    for (let delivery = 1; delivery <= deliveries && listed.length < maxListed; delivery++) {
      const first = startOf(deliveriesInAll + delivery - 1, waits + delivery * delayMillis)
      listed.push({ tier, topic, delivery, attempts: blocking.maxAttempts, first, last: plus(first, inPlace) })
    }
    deliveriesInAll += deliveries
    waits += deliveries * delayMillis
  }
  list(0, source, 0, 1)
  for (let tier = 1; tier <= tiers.count; tier++) {
    const { topic, delayMillis } = tiers.topicOf(tier)
    list(tier, topic, delayMillis, tiers.deliveries(tier))
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
