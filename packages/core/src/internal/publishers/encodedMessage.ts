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
  const own = asHeaders(message.headers ?? {})
  const common = asHeaders(target.headers).filter(({ key }) => !own.some((header) => header.key === key))
  const given = [...common, ...own]
  const broken = given.find(({ value }) => typeof value === "string" && !value.isWellFormed())
  if (broken !== undefined) {
    const detail = `header '${broken.key}' has a lone surrogate, which UTF-8 cannot carry`
    return Result.fail(new RecordRejected({ topic: target.topic, detail }))
  }
  return Result.succeed([
    ...given.map(({ key, value }) => ({ key, value: typeof value === "string" ? encoder.encode(value) : value })),
    ...(target.key.headers?.(message.key) ?? []),
    ...(target.value.headers?.(message.value) ?? [])
  ])
}

const asHeaders = (
  headers: GivenHeaders
): ReadonlyArray<{ readonly key: string; readonly value: string | Uint8Array | null }> =>
  Array.isArray(headers) ? headers : Object.entries(headers).map(([key, value]) => ({ key, value }))

const encoder = new TextEncoder()
