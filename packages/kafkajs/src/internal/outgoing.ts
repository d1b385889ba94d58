/** A record ready to be sent: its headers are encoded, and its time is set. */
import type { ConsumerRecord } from "@eventbus/core"
import { varintSize, writeVarint } from "./varint.ts"

export interface Outgoing {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  /** In Kafka's record format (v2), their count first: they keep order, repeats and null values. */
  readonly headers: Uint8Array
  /** Bytes of key, value and encoded headers. */
  readonly bytes: number
  readonly timestamp: number
}

/** `encode` is for records that are taken over together; without it a record is alone. */
export const outgoing = (record: ConsumerRecord.ProducerRecord, now: number, encode?: HeaderEncoder): Outgoing => {
  const { key, value, timestamp = now, headers: given = [] } = record
  const headers = given.length === 0 ? noHeaders : (encode ?? headerEncoder())(given)
  return { key, value, headers, bytes: (key?.length ?? 0) + (value?.length ?? 0) + headers.length, timestamp }
}

type Headers = ReadonlyArray<ConsumerRecord.Header>

export type HeaderEncoder = (headers: Headers) => Uint8Array

/**
 * Encodes the headers of one record after the other. Copies that fail together end with the same headers, and what neighbours share is copied as it was
 * encoded. Only for records that are taken over in one go: a header that is the same object has the same bytes only as long as nobody can change them.
 */
export const headerEncoder = (): HeaderEncoder => {
  let last = noHeaders
  let lastHeaders: Headers = []
  /** Where each header of the last record begins. */
  let lastBegins: ReadonlyArray<number> = []

  return (headers) => {
    const shared = sharedTail(lastHeaders, headers)
    const own = headers.length - shared
    const tail = shared === 0 ? last.length : lastBegins[lastHeaders.length - shared]!
    const begins = new Array<number>(headers.length)
    let size = varintSize(headers.length)
    for (let index = 0; index < own; index++) {
      const { key, value } = headers[index]!
      begins[index] = size
      size += nameOf(key).length + bytesSize(value)
    }
    const moved = size - tail
    for (let index = own, from = lastHeaders.length - shared; index < headers.length; index++, from++) {
      begins[index] = lastBegins[from]! + moved
    }
    const target = Buffer.allocUnsafe(size + last.length - tail)
    let at = writeVarint(target, 0, headers.length)
    for (let index = 0; index < own; index++) {
      const { key, value } = headers[index]!
      at = writeBytes(target, copy(target, at, nameOf(key)), value)
    }
    last.copy(target, at, tail)
    last = target
    lastHeaders = headers
    lastBegins = begins
    return target
  }
}

const noHeaders = Buffer.alloc(1)

/** How many headers at the end of both are the same objects. */
const sharedTail = (one: Headers, other: Headers): number => {
  const most = Math.min(one.length, other.length)
  let shared = 0
  while (shared < most && one[one.length - 1 - shared] === other[other.length - 1 - shared]) shared++
  return shared
}

/** Names of headers repeat from record to record: with their lengths in front. */
const names = new Map<string, Uint8Array>()
const mostNames = 500

const nameOf = (key: string): Uint8Array => {
  const known = names.get(key)
  if (known !== undefined) return known
  const text = Buffer.from(key)
  const encoded = new Uint8Array(bytesSize(text))
  writeBytes(encoded, 0, text)
  if (names.size >= mostNames) names.clear()
  names.set(key, encoded)
  return encoded
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
  1 + varintSize(timestampDelta) + varintSize(offsetDelta) + bytesSize(key) + bytesSize(value) + headers.length

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
  return copy(target, at, headers)
}
