/** The record of a message: its key and value encoded, its headers as bytes. */
import * as Result from "effect/Result"
import { RecordRejected } from "../../BrokerError.ts"
import type { Compression, Header, ProducerRecord } from "../../ConsumerRecord.ts"
import { EncodeFailure, type Serde } from "../../Serde.ts"
import * as Utf8 from "../base/utf8.ts"
import { withoutOwn } from "../record/forwardedHeaders.ts"

/** Headers as a user writes them. */
export type GivenHeaders =
  | { readonly [name: string]: string | Uint8Array }
  // A list of headers has no text or bytes at its indices.
  | ReadonlyArray<Header>

/** The settings of a publisher that every record takes over. */
export interface Target<K, V> {
  readonly topic: string
  readonly key: Serde<K>
  readonly value: Serde<V>
  readonly compression: Compression | undefined
  readonly headers: ReadonlyArray<GivenHeader>
}

/** The parts of a message that its record is made of. */
export interface Parts<V> {
  readonly value: V
  readonly headers?: GivenHeaders
  readonly partition?: number
  readonly timestamp?: number
}

/** `messageKey` is null for a message without a key. `index` is that of the message in its batch; undefined for one that is published by itself. */
export const recordOf = <K, V>(
  target: Target<K, V>,
  message: Parts<V>,
  messageKey: K,
  index: number | undefined
): Result.Result<ProducerRecord, EncodeFailure | RecordRejected> => {
  const { topic, compression } = target
  const { partition, timestamp } = message
  const key = target.key.encode(messageKey)
  if (Result.isFailure(key)) return Result.fail(refused(topic, "key", key.failure, index))
  const value = target.value.encode(message.value)
  if (Result.isFailure(value)) return Result.fail(refused(topic, "value", value.failure, index))
  const headers = headersOf(target, message, messageKey)
  if (headers instanceof RecordRejected) return Result.fail(headers)
  // Assigned and not spread, since this runs for every record.
  const record: Writable<ProducerRecord> = { topic, key: key.success, value: value.success, headers }
  if (partition !== undefined) record.partition = partition
  if (timestamp !== undefined) record.timestamp = timestamp
  if (compression !== undefined) record.compression = compression
  return Result.succeed(withoutOwn(record))
}

type Writable<A> = { -readonly [K in keyof A]: A[K] }

const refused = (
  topic: string,
  part: "key" | "value",
  { serde, path, detail }: EncodeFailure,
  index: number | undefined
): EncodeFailure => new EncodeFailure({ serde, path, detail, topic, part, ...(index !== undefined && { index }) })

/**
 * Those of the publisher, then those of the message, which replace the publisher's of the same name. Those that the serdes need for decoding come last, because the last
 * one counts: a message with the headers of another record would otherwise name the type of that one.
 */
const headersOf = <K, V>(target: Target<K, V>, message: Parts<V>, key: K): ReadonlyArray<Header> | RecordRejected => {
  const { headers: given = noHeaders } = message
  const headers: Array<Header> = []
  let broken: string | undefined
  for (const { key, value } of target.headers) {
    if (!isNamed(given, key)) broken ??= add(headers, key, value)
  }
  if (isList(given)) for (const { key, value } of given) broken ??= add(headers, key, value)
  else for (const key of Object.keys(given)) broken ??= add(headers, key, given[key]!)
  if (broken !== undefined) {
    const detail = `header '${broken}' has a lone surrogate, which UTF-8 cannot carry`
    return new RecordRejected({ topic: target.topic, detail })
  }
  const ofKey = target.key.headers?.(key)
  const ofValue = target.value.headers?.(message.value)
  return ofKey === undefined && ofValue === undefined ? headers : [...headers, ...(ofKey ?? []), ...(ofValue ?? [])]
}

const noHeaders: GivenHeaders = {}

const isNamed = (given: GivenHeaders, name: string): boolean =>
  isList(given) ? given.some(({ key }) => key === name) : Object.keys(given).includes(name)

/** Adds a header as bytes. Answers its name when UTF-8 cannot carry its text. */
const add = (headers: Array<Header>, key: string, value: string | Uint8Array | null): string | undefined => {
  const bytes = typeof value === "string" ? Utf8.encode(value) : value
  if (bytes === undefined) return key
  headers.push({ key, value: bytes })
  return undefined
}

/** A header as a user gives it. */
export interface GivenHeader {
  readonly key: string
  readonly value: string | Uint8Array | null
}

/** Headers as a list. */
export const listed = (headers: GivenHeaders): ReadonlyArray<GivenHeader> =>
  isList(headers) ? headers : Object.entries(headers).map(([key, value]) => ({ key, value }))

const isList = (headers: GivenHeaders): headers is ReadonlyArray<Header> => Array.isArray(headers)
