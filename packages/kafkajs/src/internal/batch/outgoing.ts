/** A record ready to be sent: its headers are encoded, and its time is set. */
import type { ConsumerRecord } from "@eventbus/core"
import { encodedName } from "./encodedName.ts"
import { varintSize, writeVarint } from "./varint.ts"

/** Headers in Kafka's record format (v2): they keep order, repeats and null values. */
export interface EncodedHeaders {
  /** Their count, and those that are the record's own. */
  readonly own: Uint8Array
  /** The rest, which neighbours may share. */
  readonly tail: Uint8Array
}

export interface Outgoing {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: EncodedHeaders
  /** Bytes of key, value and encoded headers. */
  readonly bytes: number
  readonly timestamp: number
}

/** `encode` is for records that are taken over together; without it a record is alone. */
export const outgoing = (record: ConsumerRecord.ProducerRecord, now: number, encode?: HeaderEncoder): Outgoing => {
  const { key, value, timestamp = now, headers: given = [] } = record
  const headers = given.length === 0 ? noHeaders : (encode ?? headerEncoder())(given)
  return { key, value, headers, bytes: (key?.length ?? 0) + (value?.length ?? 0) + headersSize(headers), timestamp }
}

type Headers = ReadonlyArray<ConsumerRecord.Header>

export type HeaderEncoder = (headers: Headers) => EncodedHeaders

/**
 * Encodes the headers of one record after the other. Copies that fail together end with the same headers, and what neighbours share is encoded once. Only
 * for records that are taken over in one go: a header that is the same object has the same bytes only as long as nobody can change them.
 */
export const headerEncoder = (): HeaderEncoder => {
  let last: Headers = []
  /** The last so many headers of it, and of those that share them. */
  let tailLength = 0
  let tail = nothing

  return (headers) => {
    const shared = sharedTail(last, headers)
    // What one neighbour shares by chance is no reason to encode the tail anew.
    if (shared < tailLength || shared > 2 * tailLength) {
      tailLength = shared
      tail = shared === 0 ? nothing : encodeHeaders(headers, headers.length - shared, headers.length, 0)
    }
    last = headers
    const count = varintSize(headers.length)
    const own = encodeHeaders(headers, 0, headers.length - tailLength, count)
    writeVarint(own, 0, headers.length)
    return { own, tail }
  }
}

const nothing: Uint8Array = Buffer.alloc(0)
const noHeaders: EncodedHeaders = { own: Buffer.alloc(1), tail: nothing }

/** Some of the headers, behind `room` bytes. */
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

/** How many headers at the end of both are the same objects. */
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

/** Up to so many bytes, a loop is faster than the call of `set`. */
const few = 48

const copy = (target: Uint8Array, at: number, bytes: Uint8Array): number => {
  if (bytes.length > few) target.set(bytes, at)
  else for (let index = 0; index < bytes.length; index++) target[at + index] = bytes[index]!
  return at + bytes.length
}

/** Bytes of a record in a batch, without the length in front of it. */
export const recordSize = ({ key, value, headers }: Outgoing, timestampDelta: number, offsetDelta: number): number =>
  1 + varintSize(timestampDelta) + varintSize(offsetDelta) + bytesSize(key) + bytesSize(value) + headersSize(headers)

/** Writes a record of the given size, its length in front, and returns the position behind it. */
export const writeRecord = (
  target: Uint8Array,
  at: number,
  { key, value, headers }: Outgoing,
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
