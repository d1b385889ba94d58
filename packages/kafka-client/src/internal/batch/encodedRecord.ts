/** A record that is ready to be written into a batch: its headers are encoded and its time is set. */
import type { ConsumerRecord } from "@eventbus/core"
import type { CodecName } from "../codec/codecNames.ts"
import { encodedName } from "./encodedName.ts"
import { varintSize, writeVarint } from "./varint.ts"

/** Headers in Kafka's record format (v2), which keeps order, repeats and null values. Their bytes are `own`, then `tail`. */
export interface EncodedHeaders {
  /** The number of headers, and the headers that no neighbour shares. */
  readonly own: Uint8Array
  /** The remaining headers, which neighbours may share. */
  readonly tail: Uint8Array
}

export interface EncodedRecord {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: EncodedHeaders
  /** Bytes of key, value and encoded headers. */
  readonly bytes: number
  /** The codec of the batch that it goes into. */
  readonly codec: CodecName
  /** Epoch milliseconds. */
  timestamp: number
  /** Milliseconds that were added to this node's time to get `timestamp`. `own`: the record came with its time. `ownIfAccepted`: that may be replaced. */
  correctionMillis: number | "own" | "ownIfAccepted"
}

/**
 * Encodes a record. `now` (epoch milliseconds) plus `correction` is its time where it has none, and `codec` is its codec where it names none. Records that
 * are sent in one call share `encode`.
 */
export const encodeRecord = (
  record: ConsumerRecord.ProducerRecord,
  now: number,
  encode?: HeaderEncoder,
  correction = 0,
  defaultCodec: CodecName = "none"
): EncodedRecord => {
  const { key, value, headers: list = [] } = record
  const headers = list.length === 0 ? noHeaders : (encode ?? encodeAlone)(list)
  const bytes = (key?.length ?? 0) + (value?.length ?? 0) + headersSize(headers)
  const codec = record.compression ?? defaultCodec
  return record.timestamp === undefined
    ? { key, value, headers, bytes, codec, timestamp: now + correction, correctionMillis: correction }
    : {
        key,
        value,
        headers,
        bytes,
        codec,
        timestamp: record.timestamp,
        correctionMillis: record.replaceTimestamp === true ? "ownIfAccepted" : "own"
      }
}

type Headers = ReadonlyArray<ConsumerRecord.Header>

export type HeaderEncoder = (headers: Headers) => EncodedHeaders

/**
 * Encodes the headers of one record after the other. Neighbours often end with the same header objects; those are encoded once. Use one encoder
 * only for records that are encoded in one synchronous call: between calls a caller could change the bytes of a shared header.
 */
export const headerEncoder = (): HeaderEncoder => {
  let last: Headers = []
  /** How many headers at the end of `last` are in `tail`. */
  let tailLength = 0
  let tail = emptyBytes

  return (headers) => {
    const shared = sharedTail(last, headers)
    // A little more sharing than before, by chance, does not pay for encoding the tail again.
    if (shared < tailLength || shared > 2 * tailLength) {
      tailLength = shared
      tail = shared === 0 ? emptyBytes : encodeHeaders(headers, headers.length - shared, headers.length, 0)
    }
    last = headers
    return { own: encodeOwn(headers, tailLength), tail }
  }
}

/** The headers of a record that is sent by itself: it has no neighbour to share them with. */
const encodeAlone: HeaderEncoder = (headers) => ({ own: encodeOwn(headers, 0), tail: emptyBytes })

/** The number of headers, and all of them but the last `shared`. */
const encodeOwn = (headers: Headers, shared: number): Uint8Array => {
  const own = encodeHeaders(headers, 0, headers.length - shared, varintSize(headers.length))
  writeVarint(own, 0, headers.length)
  return own
}

const emptyBytes: Uint8Array = Buffer.alloc(0)
const noHeaders: EncodedHeaders = { own: Buffer.alloc(1), tail: emptyBytes }

/** The headers from `from` to `to`, after `room` free bytes. */
const encodeHeaders = (headers: Headers, from: number, to: number, room: number): Uint8Array => {
  let size = room
  for (let index = from; index < to; index++) {
    const { key, value } = headers[index]!
    size += encodedName(key).length + bytesSize(value)
  }
  const target = Buffer.allocUnsafe(size)
  let at = room
  for (let index = from; index < to; index++) {
    const { key, value } = headers[index]!
    at = writeBytes(target, copy(target, at, encodedName(key)), value)
  }
  return target
}

const headersSize = ({ own, tail }: EncodedHeaders): number => own.length + tail.length

/** How many headers at the ends of both lists are the same objects. */
const sharedTail = (one: Headers, other: Headers): number => {
  const most = Math.min(one.length, other.length)
  let shared = 0
  while (shared < most && one[one.length - 1 - shared] === other[other.length - 1 - shared]) shared++
  return shared
}

const bytesSize = (bytes: Uint8Array | null): number =>
  bytes === null ? varintSize(-1) : varintSize(bytes.length) + bytes.length

const writeBytes = (target: Uint8Array, at: number, bytes: Uint8Array | null): number =>
  bytes === null ? writeVarint(target, at, -1) : copy(target, writeVarint(target, at, bytes.length), bytes)

/** Up to this many bytes a loop is faster than a call of `set`. */
const loopBytes = 48

const copy = (target: Uint8Array, at: number, bytes: Uint8Array): number => {
  if (bytes.length > loopBytes) target.set(bytes, at)
  else for (let index = 0; index < bytes.length; index++) target[at + index] = bytes[index]!
  return at + bytes.length
}

/** Bytes of a record in a batch, without its length field. */
export const recordSize = (
  { key, value, headers }: EncodedRecord,
  timestampDelta: number,
  offsetDelta: number
): number =>
  1 + varintSize(timestampDelta) + varintSize(offsetDelta) + bytesSize(key) + bytesSize(value) + headersSize(headers)

/** Writes the length field and the record, and returns the position after it. `size` comes from `recordSize`. */
export const writeRecord = (
  target: Uint8Array,
  at: number,
  { key, value, headers }: EncodedRecord,
  size: number,
  [timestampDelta, offsetDelta]: readonly [number, number]
): number => {
  at = writeVarint(target, at, size)
  target[at++] = 0
  at = writeVarint(target, at, timestampDelta)
  at = writeVarint(target, at, offsetDelta)
  at = writeBytes(target, at, key)
  at = writeBytes(target, at, value)
  return copy(target, copy(target, at, headers.own), headers.tail)
}
