/** A record ready to be sent: its headers are encoded, and its time is set. */
import type { ConsumerRecord } from "@eventbus/core"
import { varintSize, writeVarint } from "./varint.ts"

export interface Outgoing {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  /** In Kafka's record format (v2), their count first: they keep order, repeats and null values. */
  readonly headers: Uint8Array
  /** Bytes of key, value, and names and values of headers. */
  readonly bytes: number
  readonly timestamp: number
}

export const outgoing = (record: ConsumerRecord.ProducerRecord, now: number): Outgoing => {
  const { key, value, timestamp = now } = record
  const given = record.headers ?? []
  const headers = given.length === 0 ? noHeaders : encodeHeaders(given)
  return { key, value, headers, bytes: (key?.length ?? 0) + (value?.length ?? 0) + textBytes(given), timestamp }
}

type Headers = ReadonlyArray<ConsumerRecord.Header>

const noHeaders = new Uint8Array(1)

/** A name with its length in front. */
interface Name {
  readonly encoded: Uint8Array
  readonly bytes: number
}

/** Names of headers repeat from record to record. */
const names = new Map<string, Name>()
const mostNames = 500

const nameOf = (key: string): Name => {
  const known = names.get(key)
  if (known !== undefined) return known
  const text = Buffer.from(key)
  const encoded = new Uint8Array(bytesSize(text))
  writeBytes(encoded, 0, text)
  const name = { encoded, bytes: text.length }
  if (names.size >= mostNames) names.clear()
  names.set(key, name)
  return name
}

const textBytes = (headers: Headers): number => {
  let bytes = 0
  for (const { key, value } of headers) bytes += nameOf(key).bytes + (value?.length ?? 0)
  return bytes
}

const encodeHeaders = (headers: Headers): Uint8Array => {
  let size = varintSize(headers.length)
  for (const { key, value } of headers) size += nameOf(key).encoded.length + bytesSize(value)
  const target = Buffer.allocUnsafe(size)
  let at = writeVarint(target, 0, headers.length)
  for (const { key, value } of headers) {
    at = copy(target, at, nameOf(key).encoded)
    at = writeBytes(target, at, value)
  }
  return target
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
