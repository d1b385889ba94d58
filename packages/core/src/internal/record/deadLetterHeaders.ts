/**
 * The headers of a dead letter copy: the user's own, then the connector's account of what happened (rulings 14, 20 and 22).
 */
import type { ConsumerRecord, Header, TopicPartition } from "../../ConsumerRecord.ts"
import type { Failure } from "../failure/failure.ts"
import type { Undecodable } from "./decoding.ts"
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
  readonly undecodable?: Undecodable | undefined
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
export const make = (letter: DeadLetter): ReadonlyArray<Header> => {
  const { record, origin, failure, detail, trail, undecodable } = letter
  const headers = [...carriedOver(record.headers)]
  addOrigin(headers, origin)
  headers.push(text(Names.dltReason, letter.reason), number(Names.dltTimestamp, letter.nowMillis))
  if (detail !== undefined) headers.push(text(Names.dltDetail, detail))
  headers.push(
    number(Names.totalAttempts, letter.totalAttempts),
    number(Names.firstFailureTimestamp, letter.firstFailureMillis),
    text(Names.lastExceptionClass, failure.className),
    text(Names.lastExceptionMessage, failure.message),
    text(Names.lastExceptionStacktrace, failure.stackTrace, maxStackBytes),
    number(Names.retryTier, letter.tier)
  )
  for (const given of trail) addTierFailure(headers, given)
  if (undecodable !== undefined) headers.push(...decodeHeaders(undecodable))
  return headers
}

/** Where a record was first. */
export const addOrigin = (headers: Array<Header>, { topic, partition, offset, timestamp }: Origin): void => {
  headers.push(
    text(Names.originalTopic, topic),
    number(Names.originalPartition, partition),
    number(Names.originalOffset, offset),
    number(Names.originalTimestamp, timestamp)
  )
}

/** What a record takes along from hop to hop: user headers as they are; an `x-eventbus-*` header that is not bookkeeping once, with its last value. */
export const carriedOver = (headers: ReadonlyArray<Header>): ReadonlyArray<Header> => {
  if (!headers.some(({ key }) => key.startsWith(Names.prefix))) return headers
  const lastIndex = new Map(headers.map((header, index) => [header.key, index]))
  return headers.filter(
    ({ key }, index) => !key.startsWith(Names.prefix) || (!Names.isRewritten(key) && lastIndex.get(key) === index)
  )
}

/** One entry of the trail. */
export const addTierFailure = (headers: Array<Header>, failure: TierFailure): void => {
  headers.push(
    text(Names.tierException(failure.tier), failure.exceptionClass),
    number(Names.tierExhaustedAt(failure.tier), failure.exhaustedAtMillis),
    number(Names.tierAttempts(failure.tier), failure.attempts)
  )
}

/** For a record that is too large for the topic: drops message, stack trace and trail. What it takes to replay the record stays. */
export const withoutDiagnostics = (headers: ReadonlyArray<Header>): ReadonlyArray<Header> =>
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

/** A text header in UTF-8, cut to `maxBytes` (at most 2 KiB) between two characters. */
export const text = (key: string, value: string, maxBytes = maxTextBytes): Header => {
  const last = latest.get(key)
  if (last !== undefined && last.value === value && last.maxBytes === maxBytes) return last.header
  return remember(key, value, maxBytes, encodeText(value, maxBytes))
}

/** A number header as decimal text. */
export const number = (key: string, value: number | bigint): Header => {
  const last = latest.get(key)
  if (last !== undefined && last.value === value) return last.header
  return remember(key, value, 0, encodeDigits(String(value)))
}

/** A header as it was made last. */
interface Made {
  readonly value: string | number | bigint
  readonly maxBytes: number
  readonly header: Header
}

/** By key: copies that are made one after the other have most headers in common, and share them. */
const latest = new Map<string, Made>()

const remember = (key: string, value: Made["value"], maxBytes: number, bytes: Uint8Array): Header => {
  const header = { key, value: bytes }
  // One that was cut is not kept whole.
  if (typeof value !== "string" || value.length <= maxStackBytes) latest.set(key, { value, maxBytes, header })
  return header
}

const encoder = new TextEncoder()
const scratch = new Uint8Array(maxStackBytes)

// encodeInto writes whole characters only.
const encodeText = (value: string, maxBytes: number): Uint8Array =>
  scratch.slice(0, encoder.encodeInto(value, scratch.subarray(0, maxBytes)).written)

const encodeDigits = (decimal: string): Uint8Array => {
  const bytes = new Uint8Array(decimal.length)
  for (let index = 0; index < decimal.length; index++) bytes[index] = decimal.charCodeAt(index)
  return bytes
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
