/** The record of a message: its key and value encoded, its headers as bytes. */
import * as Result from "effect/Result"
import { RecordRejected } from "../../BrokerError.ts"
import type { Compression, Header, ProducerRecord } from "../../ConsumerRecord.ts"
import { EncodeFailure, type Serde } from "../../Serde.ts"
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
  readonly headers: GivenHeaders
}

/** The parts of a message that its record is made of. */
export interface Parts<K, V> {
  readonly key: K
  readonly value: V
  readonly headers?: GivenHeaders
  readonly partition?: number
  readonly timestamp?: number
}

/** `index` is that of the message in its batch; undefined for one that is published by itself. */
export const recordOf = <K, V>(
  target: Target<K, V>,
  message: Parts<K, V>,
  index: number | undefined
): Result.Result<ProducerRecord, EncodeFailure | RecordRejected> => {
  const { topic, compression } = target
  const { partition, timestamp } = message
  const key = target.key.encode(message.key)
  if (Result.isFailure(key)) return Result.fail(refused(topic, "key", key.failure, index))
  const value = target.value.encode(message.value)
  if (Result.isFailure(value)) return Result.fail(refused(topic, "value", value.failure, index))
  const headers = headersOf(target, message)
  if (Result.isFailure(headers)) return Result.fail(headers.failure)
  return Result.succeed(
    withoutOwn({
      topic,
      key: key.success,
      value: value.success,
      headers: headers.success,
      ...(partition !== undefined && { partition }),
      ...(timestamp !== undefined && { timestamp }),
      ...(compression !== undefined && { compression })
    })
  )
}

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
const headersOf = <K, V>(
  target: Target<K, V>,
  message: Parts<K, V>
): Result.Result<ReadonlyArray<Header>, RecordRejected> => {
  const own = asHeaders(message.headers)
  const common = asHeaders(target.headers)
  const headers: Array<Header> = []
  let broken: string | undefined
  const add = ({ key, value }: GivenHeader) => {
    if (typeof value !== "string") headers.push({ key, value })
    else if (value.isWellFormed()) headers.push({ key, value: encoder.encode(value) })
    else broken ??= key
  }
  for (const header of common) if (!own.some(({ key }) => key === header.key)) add(header)
  for (const header of own) add(header)
  if (broken !== undefined) {
    const detail = `header '${broken}' has a lone surrogate, which UTF-8 cannot carry`
    return Result.fail(new RecordRejected({ topic: target.topic, detail }))
  }
  const ofKey = target.key.headers?.(message.key)
  const ofValue = target.value.headers?.(message.value)
  return Result.succeed(
    ofKey === undefined && ofValue === undefined ? headers : [...headers, ...(ofKey ?? []), ...(ofValue ?? [])]
  )
}

interface GivenHeader {
  readonly key: string
  readonly value: string | Uint8Array | null
}

const none: ReadonlyArray<GivenHeader> = []

const asHeaders = (headers: GivenHeaders | undefined): ReadonlyArray<GivenHeader> => {
  if (headers === undefined) return none
  if (Array.isArray(headers)) return headers
  const given: Array<GivenHeader> = []
  for (const [key, value] of Object.entries(headers)) given.push({ key, value })
  return given
}

const encoder = new TextEncoder()
