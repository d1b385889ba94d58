/**
 * The headers of a dead letter copy: the user's own, then the connector's account of what happened (rulings 14, 20 and 22).
 */
import type { ConsumerRecord, Header, TopicPartition } from "../ConsumerRecord.ts"
import type { Undecodable } from "./delivery.ts"
import type { Failure } from "./failure.ts"
import * as Names from "./headerNames.ts"

/** `MANUAL`: dead-lettered by a command or by an explicit decision of the handler. */
export type DeadLetterReason = "RETRIES_EXHAUSTED" | "NON_RETRYABLE" | "MANUAL"

/** Where a record was first; a record on the main topic is its own origin. */
export interface Origin extends TopicPartition {
  readonly offset: bigint
  /** Epoch milliseconds. */
  readonly timestamp: number
}

/** How a tier (0 is the main topic) gave a record up. */
export interface TierFailure {
  readonly tier: number
  readonly exceptionClass: string
  readonly exhaustedAtMillis: number
  /** Handler calls in that tier. */
  readonly attempts: number
}

export interface DeadLetter {
  readonly record: ConsumerRecord
  readonly origin: Origin
  readonly reason: DeadLetterReason
  /** What the route said about it. */
  readonly detail?: string | undefined
  readonly failure: Failure
  /** Set when the record never reached the handler. */
  readonly undecodable?: Undecodable
  /** Last tier attempted; 0 is the main topic. */
  readonly tier: number
  /** Handler calls over all tiers. */
  readonly totalAttempts: number
  readonly firstFailureMillis: number
  /** One entry for each tier that the record was in, in order; none for tiers that it skipped. */
  readonly trail: ReadonlyArray<TierFailure>
  readonly nowMillis: number
}

const maxTextBytes = 1024
const maxStackBytes = 2048

/** The headers of the copy, in order. */
export const make = (letter: DeadLetter): ReadonlyArray<Header> => [
  ...carried(letter.record.headers),
  text(Names.originalTopic, letter.origin.topic),
  number(Names.originalPartition, letter.origin.partition),
  number(Names.originalOffset, letter.origin.offset),
  number(Names.originalTimestamp, letter.origin.timestamp),
  text(Names.dltReason, letter.reason),
  number(Names.dltTimestamp, letter.nowMillis),
  ...(letter.detail === undefined ? [] : [text(Names.dltDetail, letter.detail)]),
  number(Names.totalAttempts, letter.totalAttempts),
  number(Names.firstFailureTimestamp, letter.firstFailureMillis),
  text(Names.lastExceptionClass, letter.failure.className),
  text(Names.lastExceptionMessage, letter.failure.message),
  text(Names.lastExceptionStacktrace, letter.failure.stackTrace, maxStackBytes),
  number(Names.retryTier, letter.tier),
  ...letter.trail.flatMap(trailHeaders),
  ...(letter.undecodable === undefined ? [] : decodeHeaders(letter.undecodable))
]

/** What a record takes along from hop to hop: user headers as they are; an `x-eventbus-*` header that is not bookkeeping once, with its last value. */
export const carried = (headers: ReadonlyArray<Header>): ReadonlyArray<Header> => {
  if (!headers.some(({ key }) => key.startsWith(Names.prefix))) return headers
  const lastIndex = new Map(headers.map((header, index) => [header.key, index]))
  return headers.filter(
    ({ key }, index) => !key.startsWith(Names.prefix) || (!Names.isBookkeeping(key) && lastIndex.get(key) === index)
  )
}

/** The headers of one entry of the trail. */
export const trailHeaders = (failure: TierFailure): ReadonlyArray<Header> => [
  text(Names.tierException(failure.tier), failure.exceptionClass),
  number(Names.tierExhaustedAt(failure.tier), failure.exhaustedAtMillis),
  number(Names.tierAttempts(failure.tier), failure.attempts)
]

/** For a record that is too large for the topic: drops message, stack trace and trail. What it takes to replay the record stays. */
export const withoutForensics = (headers: ReadonlyArray<Header>): ReadonlyArray<Header> =>
  headers.filter(
    ({ key }) => key !== Names.lastExceptionMessage && key !== Names.lastExceptionStacktrace && !Names.isTrail(key)
  )

/** Bytes that headers take in Kafka's record format (v2), their count included. */
export const byteSize = (headers: ReadonlyArray<Header>): number =>
  headers.reduce(
    (total, { key, value }) =>
      total + lengthPrefixed(encoder.encode(key).length) + (value === null ? 1 : lengthPrefixed(value.length)),
    varintSize(headers.length)
  )

/** A text header in UTF-8, cut to `maxBytes` between two characters. */
export const text = (key: string, value: string, maxBytes = maxTextBytes): Header => {
  if (value.length <= shortText) return { key, value: encodeShort(value) }
  const buffer = new Uint8Array(Math.min(maxBytes, value.length * 3))
  // encodeInto writes whole characters only.
  return { key, value: buffer.slice(0, encoder.encodeInto(value, buffer).written) }
}

/** A number header as decimal text. */
export const number = (key: string, value: number | bigint): Header => {
  const decimal = String(value)
  // Offsets and times hardly ever come again.
  return { key, value: decimal.length <= 4 ? encodeShort(decimal) : encoder.encode(decimal) }
}

const encoder = new TextEncoder()

/** Topics, class names, small numbers: what copy after copy has in common is encoded once. In any encoding they are far below every limit. */
const shortText = 64
const mostRemembered = 500
const remembered = new Map<string, Uint8Array>()

const encodeShort = (value: string): Uint8Array => {
  const known = remembered.get(value)
  if (known !== undefined) return known
  const encoded = encoder.encode(value)
  if (remembered.size >= mostRemembered) remembered.clear()
  remembered.set(value, encoded)
  return encoded
}

const decodeHeaders = ({ key, value }: Undecodable): ReadonlyArray<Header> => {
  const target = key === undefined ? "value" : value === undefined ? "key" : "both"
  const path = value?.path || key?.path
  return [text(Names.decodeTarget, target), ...(path ? [text(Names.decodePath, path)] : [])]
}

const lengthPrefixed = (length: number): number => varintSize(length) + length

/** Lengths are zigzag varints: doubled, then seven bits a byte. */
const varintSize = (length: number): number => {
  let size = 1
  for (let rest = length * 2; rest >= 128; rest = Math.floor(rest / 128)) size++
  return size
}
