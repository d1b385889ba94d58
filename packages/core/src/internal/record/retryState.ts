/**
 * What a record brings along through the retry tiers: where it was first, which tier and delivery it is in, and what happened so far.
 *
 * The headers are untrusted input (ruling 14): whatever is missing, malformed or out of range gets a safe default, and on the main topic nothing is
 * read at all.
 */
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import type { TierTopic } from "../retry/tiers.ts"
import { addOrigin, addTierFailure, carriedOver, number, type Origin, type TierFailure } from "./deadLetterHeaders.ts"
import * as Names from "./headerNames.ts"
import * as HeaderValues from "./headerValues.ts"
import { timestamp, wholeNumber } from "./headerValues.ts"
import { lastValues, type OwnHeaders, readOrigin } from "./origin.ts"

export interface RetryState {
  readonly origin: Origin
  /** 0 is the main topic. */
  readonly tier: number
  /** Which delivery in the tier this is, from 1. */
  readonly attempt: number
  /** When it was published to the tier, epoch milliseconds. */
  readonly publishedMillis: number
  /** Handler calls before this delivery, over all tiers. */
  readonly totalAttempts: number
  /** Undefined before the first failure. */
  readonly firstFailureMillis: number | undefined
  /** The tiers that gave it up. */
  readonly trail: ReadonlyArray<TierFailure>
}

/** A record of the main topic: it starts at Tier 0, whatever its headers claim. */
export const ofMainTopic = (record: ConsumerRecord): RetryState => ({
  origin: record,
  tier: 0,
  attempt: 1,
  publishedMillis: record.timestamp,
  totalAttempts: 0,
  firstFailureMillis: undefined,
  trail: []
})

/** A record of a retry topic. `deliveries` says how many a tier has. */
export const ofRetryTopic = (
  record: ConsumerRecord,
  topic: TierTopic,
  deliveries: (tier: number) => number
): RetryState => {
  const headers = lastValues(record.headers)
  const tier = wholeNumber(headers.get(Names.retryTier), topic.first, topic.last) ?? topic.first
  return {
    origin: readOrigin(record, headers) ?? record,
    tier,
    attempt: wholeNumber(headers.get(Names.retryAttempt), 1, deliveries(tier)) ?? 1,
    publishedMillis: plausible(headers.get(Names.retryTimestamp), record),
    totalAttempts: wholeNumber(headers.get(Names.totalAttempts), 0, mostAttempts) ?? 0,
    firstFailureMillis: timestamp(headers.get(Names.firstFailureTimestamp)),
    trail: trailOf(headers, tier)
  }
}

/** When a record of a retry topic was published to it: all that deciding about its delay takes. */
export const publishedMillis = (record: ConsumerRecord): number =>
  plausible(HeaderValues.last(record.headers, Names.retryTimestamp), record)

/** The headers of a copy in a retry topic: the user's own, then where it comes from, where it is, and what happened. */
export const headersFor = (record: ConsumerRecord, state: RetryState): ReadonlyArray<Header> => {
  const headers = [...carriedOver(record.headers)]
  addOrigin(headers, state.origin)
  headers.push(number(Names.totalAttempts, state.totalAttempts))
  if (state.firstFailureMillis !== undefined) {
    headers.push(number(Names.firstFailureTimestamp, state.firstFailureMillis))
  }
  for (const given of state.trail) addTierFailure(headers, given)
  headers.push(
    number(Names.retryTier, state.tier),
    number(Names.retryAttempt, state.attempt),
    number(Names.retryTimestamp, state.publishedMillis)
  )
  return headers
}

/** Handler calls that the current tier has had before this delivery. */
export const attemptsInTier = ({ totalAttempts, trail }: RetryState): number =>
  Math.max(0, totalAttempts - trail.reduce((sum, { attempts }) => sum + attempts, 0))

/** A copy cannot be published later than it was stored. An hour is what Kafka itself allows clocks to differ by (`message.timestamp.after.max.ms`). */
const mostAheadMillis = 3_600_000

const plausible = (value: HeaderValues.HeaderValue, record: ConsumerRecord): number => {
  const published = timestamp(value)
  return published === undefined || published > record.timestamp + mostAheadMillis ? record.timestamp : published
}

const mostAttempts = 1_000_000_000

/** Of the tiers behind the record; one without an exception is none. */
const trailOf = (headers: OwnHeaders, tier: number): ReadonlyArray<TierFailure> => {
  const trail: Array<TierFailure> = []
  for (let passed = 0; passed < tier; passed++) {
    const exceptionClass = HeaderValues.text(headers.get(Names.tierException(passed)))
    if (exceptionClass === undefined) continue
    trail.push({
      tier: passed,
      exceptionClass,
      exhaustedAtMillis: timestamp(headers.get(Names.tierExhaustedAt(passed))) ?? 0,
      attempts: wholeNumber(headers.get(Names.tierAttempts(passed)), 0, mostAttempts) ?? 0
    })
  }
  return trail
}
