/**
 * Records of several types in one topic: header `__TypeId__` of each names the type of its value, as Spring's JSON serializer writes it (brokers seed
 * "KafkaProducerConfig", "KafkaConsumerConfig").
 *
 * ```ts
 * import { Serde, TypeId } from "@eventbus/core"
 * import { Schema } from "effect"
 *
 * export const messages = TypeId.serde({
 *   "com.extractor.unraveldocs.EmailMessage": Serde.json(Schema.Struct({ to: Schema.String })),
 *   "com.extractor.unraveldocs.UserMessage": Serde.json(Schema.Struct({ user: Schema.String }))
 * })
 * ```
 *
 * The header is input. It chooses among the serdes that are given, and only where its name is trusted; any other name, and none, is a `DecodeFailure`.
 */
import * as Result from "effect/Result"
import type { Header } from "./ConsumerRecord.ts"
import * as HeaderValues from "./internal/record/headerValues.ts"
import { type Any, DecodeFailure, EncodeFailure, type Serde, type Source } from "./Serde.ts"

/** The header that holds the name. Where it is repeated, the last one counts. */
const headerKey = "__TypeId__"

/** For who publishes without a serde: says that the value is of this type. */
export const header = (name: string): Header => ({ key: headerKey, value: encoder.encode(name) })

/** Serdes by the names of their types. */
type Types = Readonly<Record<string, Any>>

/** A value with the name of its type: a union to match on `_tag`. */
export type Named<T extends Types> = {
  readonly [Name in keyof T & string]: {
    readonly _tag: Name
    /** The decoded value. */
    readonly value: T[Name] extends Serde<infer A> ? A : never
  }
}[keyof T & string]

/** The settings of a serde for several types. */
export interface Options {
  /** Names that may be decoded: exact ones, and `prefix.*` for all that begin with `prefix.`. Default: the names that have a serde. */
  readonly trusted?: ReadonlyArray<string>
}

/** A serde whose records need a header. */
type WithHeaders<A> = Serde<A> & Required<Pick<Serde<A>, "headers">>

/**
 * Reads a value by the serde of the type that the header names. Its `headers` give the header to publish with. A tombstone is a failure, as everywhere:
 * wrap the whole in `Serde.nullable`.
 */
export const serde = <const T extends Types>(types: T, options: Options = {}): WithHeaders<Named<T>> => {
  const { trusted = Object.keys(types) } = options
  const serdes = new Map(Object.entries(types).filter(([name]) => isTrusted(name, trusted)))
  const known = listed(Array.from(serdes.keys()))
  const called = (name: string | undefined) => (name === undefined ? undefined : serdes.get(name))

  /** The message for a name that no serde is for. */
  const refusal = (name: string | undefined): string => {
    if (name === undefined) return `header ${headerKey} is missing; it must be one of ${known}`
    return isTrusted(name, trusted)
      ? `header ${headerKey} is '${name}', which has no serde; there is one for ${known}`
      : `header ${headerKey} is '${name}', which is not trusted; trusted is ${listed(trusted)}`
  }
  const failed = (name: string | undefined) => ({ serde: serdeName, path: "", detail: refusal(name) })

  return {
    name: serdeName,
    decode: (bytes, source) => {
      const name = nameIn(source)
      const chosen = called(name)
      return chosen === undefined
        ? Result.fail(new DecodeFailure(failed(name)))
        : Result.map(chosen.decode(bytes, source), (value) => ({ _tag: name, value }) as Named<T>)
    },
    encode: ({ _tag: name, value }) => serdes.get(name)?.encode(value) ?? Result.fail(new EncodeFailure(failed(name))),
    headers: ({ _tag: name, value }) => [...(serdes.get(name)?.headers?.(value) ?? []), header(name)],
    ...(Array.from(serdes.values()).some(({ prepare }) => prepare !== undefined) && {
      prepare: (bytes, source) => called(nameIn(source))?.prepare?.(bytes, source)
    })
  }
}

const serdeName = "type-id"

const nameIn = (source: Source | undefined): string | undefined =>
  source && HeaderValues.text(HeaderValues.last(source.headers, headerKey))

const isTrusted = (name: string, trusted: ReadonlyArray<string>): boolean =>
  trusted.some((pattern) => (pattern.endsWith(".*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern))

/** As many as a message has room for. */
const listed = (names: ReadonlyArray<string>): string => {
  const shown = names.slice(0, mostListed).join(", ")
  if (names.length === 0) return "none"
  return names.length > mostListed ? `${shown} and ${names.length - mostListed} more` : shown
}

const mostListed = 20
const encoder = new TextEncoder()
