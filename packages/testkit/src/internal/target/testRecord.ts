/**
 * Records as tests write them, and their encoding.
 */
import { type Binding, type ConsumerRecord, Serde } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"

/** A record to publish. */
export interface TestRecord {
  /** A key of the binding that reads the topic. Bytes and null are published unchanged; text is UTF-8 where keys have no serde. Default null. */
  readonly key?: unknown
  /** A value of the binding that reads the topic. Bytes and null are published unchanged; text is UTF-8 where no binding reads the topic. */
  readonly value: unknown
  /** Header values; text is UTF-8. Default none. */
  readonly headers?: Readonly<Record<string, string | Uint8Array | null>>
  /** Default: chosen by key. */
  readonly partition?: number
  /** Epoch milliseconds. Default: now. */
  readonly timestamp?: number
}

/** Encodes a record. `reader` is the binding that reads the topic, if any. */
export const encode = Effect.fnUntraced(function* (
  topic: string,
  record: TestRecord,
  reader: Binding.Binding<unknown> | undefined
): Effect.fn.Return<ConsumerRecord.ProducerRecord, Serde.EncodeFailure> {
  const { partition, timestamp, headers = {} } = record
  const serdes = reader?.definition.serdes
  const given = Object.entries(headers).map(([key, value]) => ({
    key,
    value: typeof value === "string" ? utf8.encode(value) : value
  }))
  return {
    topic,
    key: yield* toBytes(record.key, serdes?.key).pipe(Effect.mapError(within("key", topic, reader))),
    value: yield* toBytes(record.value, serdes?.value).pipe(Effect.mapError(within("value", topic, reader))),
    headers: [...headersFor(record.key, serdes?.key), ...headersFor(record.value, serdes?.value), ...given],
    ...(partition === undefined ? {} : { partition }),
    ...(timestamp === undefined ? {} : { timestamp })
  }
})

/** Adds to the failure which half of which record it is about. */
const within =
  (half: "key" | "value", topic: string, reader: Binding.Binding<unknown> | undefined) =>
  ({ serde, path, detail }: Serde.EncodeFailure): Serde.EncodeFailure => {
    const read = reader === undefined ? `topic '${topic}', which no binding of this bus reads` : `topic '${topic}'`
    return new Serde.EncodeFailure({ serde, path, detail: `${half} of a record for ${read}: ${detail}` })
  }

/** Encodes a key or a value. */
export const toBytes = (
  given: unknown,
  serde: Serde.Any | undefined
): Effect.Effect<Uint8Array | null, Serde.EncodeFailure> => {
  if (given === undefined || given === null) return Effect.succeed(null)
  if (given instanceof Uint8Array) return Effect.succeed(given)
  // A binding without a key serde has `Serde.bytes`, so text is meant as text there.
  const isPlain = serde === undefined || serde === Serde.bytes
  const chosen: Serde.Any = isPlain ? Serde.string : serde
  return Effect.fromResult(
    Result.flatMap(typeof given === "string" || !isPlain ? asIs : refused, () => chosen.encode(given))
  )
}

/** The headers that the serde needs for decoding. */
const headersFor = (
  given: unknown,
  serde: Serde.Any | undefined
): NonNullable<ConsumerRecord.ProducerRecord["headers"]> =>
  given === undefined || given === null || given instanceof Uint8Array ? [] : (serde?.headers?.(given) ?? [])

const asIs = Result.succeed(undefined)

const refused = Result.fail(
  new Serde.EncodeFailure({
    serde: "bytes",
    path: "",
    detail: "nothing says how to write it; give text, bytes or null"
  })
)

/** Bytes as text for messages; bytes that are not UTF-8 as their length. */
export const show = (bytes: Uint8Array | null): string | undefined => {
  if (bytes === null) return undefined
  return Result.match(Serde.string.decode(bytes), {
    onSuccess: (text) => text,
    onFailure: () => `${bytes.length} bytes`
  })
}

/** The decoded value; the bytes where the serde cannot decode them. */
export const read = (bytes: Uint8Array | null, serde: Serde.Any, source: Serde.Source): unknown =>
  Result.getOrElse(serde.decode(bytes, source), () => bytes)

const utf8 = new TextEncoder()
