/**
 * What a record brings along through the retry tiers: where it was first, which tier and delivery it is in, and what happened so far.
 *
 * The headers are untrusted input (ruling 14): whatever is missing, malformed or out of range gets a safe default, and on the main topic nothing is
 * read at all.
 */
import type { ConsumerRecord, Header } from "../ConsumerRecord.ts"
import * as TopicName from "../TopicName.ts"
import { carried, number, type Origin, type TierFailure, text, trailHeaders } from "./deadLetterHeaders.ts"
import * as Names from "./headerNames.ts"
import type { TierTopic } from "./tiers.ts"

export interface Bookkeeping {
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
export const ofMain = (record: ConsumerRecord): Bookkeeping => ({
  origin: record,
  tier: 0,
  attempt: 1,
  publishedMillis: record.timestamp,
  totalAttempts: 0,
  firstFailureMillis: undefined,
  trail: []
})

/** A record of a retry topic. `deliveries` says how many a tier has. */
export const ofTier = (record: ConsumerRecord, topic: TierTopic, deliveries: (tier: number) => number): Bookkeeping => {
  const headers = lastValues(record.headers)
  const tier = wholeNumber(headers.get(Names.retryTier), topic.first, topic.last) ?? topic.first
  return {
    origin: originOf(record, headers),
    tier,
    attempt: wholeNumber(headers.get(Names.retryAttempt), 1, deliveries(tier)) ?? 1,
    publishedMillis: timestamp(headers.get(Names.retryTimestamp)) ?? record.timestamp,
    totalAttempts: wholeNumber(headers.get(Names.totalAttempts), 0, mostAttempts) ?? 0,
    firstFailureMillis: timestamp(headers.get(Names.firstFailureTimestamp)),
    trail: trailOf(headers, tier)
  }
}

/** When a record of a retry topic was published to it: all that deciding about its delay takes. */
export const publishedMillis = (record: ConsumerRecord): number => {
  // From the end: the connector writes its own headers last.
  for (let index = record.headers.length - 1; index >= 0; index--) {
    const header = record.headers[index]!
    if (header.key === Names.retryTimestamp) return timestamp(header.value) ?? record.timestamp
  }
  return record.timestamp
}

/** Coordinates of the first topic, for keys that must name a record once and for all. */
export const originOfTierRecord = (record: ConsumerRecord): Origin => originOf(record, lastValues(record.headers))

/** The headers of a copy in a retry topic: the user's own, then where it comes from, where it is, and what happened. */
export const headersFor = (record: ConsumerRecord, state: Bookkeeping): ReadonlyArray<Header> => [
  ...carried(record.headers),
  text(Names.originalTopic, state.origin.topic),
  number(Names.originalPartition, state.origin.partition),
  number(Names.originalOffset, state.origin.offset),
  number(Names.originalTimestamp, state.origin.timestamp),
  number(Names.totalAttempts, state.totalAttempts),
  ...(state.firstFailureMillis === undefined ? [] : [number(Names.firstFailureTimestamp, state.firstFailureMillis)]),
  ...state.trail.flatMap(trailHeaders),
  number(Names.retryTier, state.tier),
  number(Names.retryAttempt, state.attempt),
  number(Names.retryTimestamp, state.publishedMillis)
]

/** Handler calls that the current tier has had before this delivery. */
export const attemptsInTier = ({ totalAttempts, trail }: Bookkeeping): number =>
  Math.max(0, totalAttempts - trail.reduce((sum, { attempts }) => sum + attempts, 0))

const mostAttempts = 1_000_000_000
const maxInt32 = 2 ** 31 - 1
/** The last moment that a `Date` can show. */
const lastMillis = 8_640_000_000_000_000

const decoder = new TextDecoder("latin1")

const lastValues = (headers: ReadonlyArray<Header>): ReadonlyMap<string, Uint8Array | null> =>
  new Map(headers.filter(({ key }) => key.startsWith(Names.prefix)).map(({ key, value }) => [key, value]))

const digits = (value: Uint8Array | null | undefined): string | undefined => {
  if (value === null || value === undefined || value.length === 0 || value.length > 20) return undefined
  const decoded = decoder.decode(value)
  return /^\d+$/.test(decoded) ? decoded : undefined
}

const wholeNumber = (value: Uint8Array | null | undefined, least: number, most: number): number | undefined => {
  const decoded = digits(value)
  if (decoded === undefined) return undefined
  const parsed = Number(decoded)
  return parsed >= least && parsed <= most ? parsed : undefined
}

const timestamp = (value: Uint8Array | null | undefined): number | undefined => wholeNumber(value, 0, lastMillis)

/** All of it or nothing: half an origin would point to a record that is none. */
const originOf = (record: ConsumerRecord, headers: ReadonlyMap<string, Uint8Array | null>): Origin => {
  const topicBytes = headers.get(Names.originalTopic)
  const topic = topicBytes === null || topicBytes === undefined ? "" : decoder.decode(topicBytes)
  const partition = wholeNumber(headers.get(Names.originalPartition), 0, maxInt32)
  const offset = digits(headers.get(Names.originalOffset))
  if (TopicName.illegal(topic) !== undefined || partition === undefined || offset === undefined) return record
  const exact = BigInt(offset)
  if (exact > maxOffset) return record
  return {
    topic,
    partition,
    offset: exact,
    timestamp: timestamp(headers.get(Names.originalTimestamp)) ?? record.timestamp
  }
}

const maxOffset = 2n ** 63n - 1n

/** Of the tiers behind the record; one without an exception is none. */
const trailOf = (headers: ReadonlyMap<string, Uint8Array | null>, tier: number): ReadonlyArray<TierFailure> => {
  const trail: Array<TierFailure> = []
  for (let passed = 0; passed < tier; passed++) {
    const exception = headers.get(Names.tierException(passed))
    if (exception === null || exception === undefined) continue
    trail.push({
      tier: passed,
      exceptionClass: utf8.decode(exception),
      exhaustedAtMillis: timestamp(headers.get(Names.tierExhaustedAt(passed))) ?? 0,
      attempts: wholeNumber(headers.get(Names.tierAttempts(passed)), 0, mostAttempts) ?? 0
    })
  }
  return trail
}

const utf8 = new TextDecoder()
