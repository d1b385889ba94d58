/**
 * The headers of a dead letter: the user's own headers, then what happened to the record (rulings 14, 20 and 22).
 */
import type { ConsumerRecord, Header, TopicPartition } from "../../ConsumerRecord.ts"
import type { DeadLetterReason, Failure } from "../../Failure.ts"
import * as CauseChain from "../failure/causeChain.ts"
import * as Failures from "../failure/failure.ts"
import * as Fingerprint from "../failure/fingerprint.ts"
import type { Undecodable } from "./decoding.ts"
import * as Names from "./headerNames.ts"
import * as RunMark from "./runMark.ts"

/** Where a record was read first. A record of the main topic is its own origin. */
export interface Origin extends TopicPartition {
  readonly offset: bigint
  /** Epoch milliseconds. */
  readonly timestamp: number
}

/** How a tier (0 is the main topic) failed to handle a record. */
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
  /** The reason that `Route.deadLetter(reason)` gave. */
  readonly detail?: string | undefined
  readonly failure: Failure
  /** Set when the record could not be decoded and never reached the handler. */
  readonly undecodable?: Undecodable | undefined
  /** The last tier that attempted the record; 0 is the main topic. */
  readonly tier: number
  /** Handler calls over all tiers. */
  readonly totalAttempts: number
  readonly firstFailureMillis: number
  /** One entry for each tier that failed, in order. Tiers that the record skipped have none. */
  readonly trail: ReadonlyArray<TierFailure>
  /** How often it was replayed. */
  readonly replayCount: number
  /** The run that replayed it last. */
  readonly run?: RunMark.RunMark | undefined
  readonly nowMillis: number
  /** The user's function that groups dead letters. */
  readonly ownFingerprint?: Fingerprint.OwnFingerprint | undefined
}

const maxTextBytes = 1024
const maxStackBytes = 2048

/** Builds the headers of the dead letter, in order. */
export const make = (letter: DeadLetter): Array<Header> => {
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
    ...causeHeader(failure),
    text(Names.lastExceptionFingerprint, fingerprintOf(letter)),
    number(Names.retryTier, letter.tier)
  )
  for (const tierFailure of trail) addTierFailure(headers, tierFailure)
  if (letter.replayCount > 0) headers.push(number(Names.replayCount, letter.replayCount))
  if (letter.run !== undefined) headers.push(RunMark.header(letter.run))
  if (undecodable !== undefined) headers.push(...decodeHeaders(undecodable))
  return headers
}

/** Adds the headers that say where a record was read first. */
export const addOrigin = (headers: Array<Header>, { topic, partition, offset, timestamp }: Origin): void => {
  headers.push(
    text(Names.originalTopic, topic),
    number(Names.originalPartition, partition),
    number(Names.originalOffset, offset),
    number(Names.originalTimestamp, timestamp)
  )
}

/**
 * The headers that a copy keeps from its record: the user's headers as they are. An `x-eventbus-*` header that the connector does not rewrite is kept once, with
 * its last value.
 */
export const carriedOver = (headers: ReadonlyArray<Header>): ReadonlyArray<Header> => {
  if (!headers.some(({ key }) => key.startsWith(Names.prefix))) return headers
  const lastIndex = new Map(headers.map((header, index) => [header.key, index]))
  return headers.filter(
    ({ key }, index) => !key.startsWith(Names.prefix) || (!Names.isRewritten(key) && lastIndex.get(key) === index)
  )
}

/** Adds the headers of one entry of the trail. */
export const addTierFailure = (headers: Array<Header>, failure: TierFailure): void => {
  headers.push(
    text(Names.tierException(failure.tier), failure.exceptionClass),
    number(Names.tierExhaustedAt(failure.tier), failure.exhaustedAtMillis),
    number(Names.tierAttempts(failure.tier), failure.attempts)
  )
}

const causeHeader = ({ causes }: Failure): ReadonlyArray<Header> =>
  causes.length === 0 ? [] : [{ key: Names.lastExceptionCause, value: CauseChain.write(causes) }]

const fingerprintOf = ({ reason, failure, undecodable, origin, ownFingerprint }: DeadLetter): string =>
  Fingerprint.of(
    {
      ...{ reason, exceptionClass: failure.className, message: failure.message, causes: failure.causes },
      ...{ decodePath: undecodable && pathOf(undecodable), originalTopic: origin.topic },
      subject: Failures.subjectOf(failure)
    },
    ownFingerprint
  )

const diagnostics: ReadonlySet<string> = new Set([
  Names.lastExceptionMessage,
  Names.lastExceptionStacktrace,
  Names.lastExceptionCause
])

/** Drops error message, stack trace, causes and trail, for a record that is too large for its topic. The headers that a replay needs stay, and so does the group. */
export const withoutDiagnostics = (headers: ReadonlyArray<Header>): ReadonlyArray<Header> =>
  headers.filter(({ key }) => !diagnostics.has(key) && !Names.isTrail(key))

/** A text header in UTF-8, cut between two characters to at most `maxBytes` (default 1 KiB, at most 2 KiB). */
export const text = (key: string, value: string, maxBytes = maxTextBytes): Header => {
  const last = cache.get(key)
  if (last !== undefined && last.value === value && last.maxBytes === maxBytes) return last.header
  return remember(key, value, maxBytes, encodeText(value, maxBytes))
}

/** A number header as decimal text. */
export const number = (key: string, value: number | bigint): Header => {
  const last = cache.get(key)
  if (last !== undefined && last.value === value) return last.header
  return remember(key, value, 0, encodeDigits(String(value)))
}

/** The last header that was made for a key. */
interface CachedHeader {
  readonly value: string | number | bigint
  readonly maxBytes: number
  readonly header: Header
}

/** By key. Successive copies have most headers in common and share them. */
const cache = new Map<string, CachedHeader>()

const remember = (key: string, value: CachedHeader["value"], maxBytes: number, bytes: Uint8Array): Header => {
  const header = { key, value: bytes }
  // A longer text was cut, so the cache would hold a text of any size.
  if (typeof value !== "string" || value.length <= maxStackBytes) cache.set(key, { value, maxBytes, header })
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

const decodeHeaders = (undecodable: Undecodable): ReadonlyArray<Header> => {
  const { key, value } = undecodable
  const target = key === undefined ? "value" : value === undefined ? "key" : "both"
  const path = pathOf(undecodable)
  return [text(Names.decodeTarget, target), ...(path ? [text(Names.decodePath, path)] : [])]
}

const pathOf = ({ key, value }: Undecodable): string | undefined => value?.path || key?.path || undefined
