/**
 * How bytes become a key or a value, and back. Synchronous and without services: it runs for every record.
 *
 * A decode failure is a value, never an exception: the record goes to the dead letter topic with its original bytes, and the
 * handler is not called. null (a tombstone, or no key), zero bytes and the JSON text `null` are three different things: see `nullable`.
 */
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import type { ConsumerRecord, Header } from "./ConsumerRecord.ts"
import { isBytes, isBytesOrNull } from "./internal/base/bytes.ts"
import * as Failure from "./internal/failure/failure.ts"
import * as Kinds from "./Kinds.ts"
import * as UserFunction from "./UserFunction.ts"

/** The bytes are not what the serde expects. Retrying cannot help: the same bytes fail again. */
export class DecodeFailure extends Schema.TaggedError<DecodeFailure>()("DecodeFailure", {
  /** Name of the serde. */
  serde: Schema.String,
  /** Where the first problem is, such as `["items"][0]["price"]`; empty when it is the whole. */
  path: Schema.String,
  /** All problems, as text; says what was expected. */
  detail: Schema.String
}) {
  /** Repeating cannot help. */
  readonly retryable = false
  override get message(): string {
    return `${this.serde} cannot decode the record: ${this.detail}`
  }
}

/** The value cannot be written. Retrying cannot help: the same value fails again. */
export class EncodeFailure extends Schema.TaggedError<EncodeFailure>()("EncodeFailure", {
  /** Name of the serde. */
  serde: Schema.String,
  /** Where the first problem is, such as `["items"][0]["price"]`; empty when it is the whole. */
  path: Schema.String,
  /** All problems, as text; says what was expected. */
  detail: Schema.String,
  /** The topic that the record was for. Absent outside of a publisher. */
  topic: Schema.optionalKey(Schema.String),
  /** The part of the message that was refused. Absent outside of a publisher. */
  part: Schema.optionalKey(Schema.Literals(["key", "value"])),
  /** The index of the message among those that were published together, from 0. Absent for a single one. */
  index: Schema.optionalKey(Schema.Int)
}) {
  /** Repeating cannot help. */
  readonly retryable = false
  override get message(): string {
    const { serde, detail, topic, part = "value", index } = this
    const of = index === undefined ? "" : ` of message ${index}`
    return `${serde} cannot encode the ${part}${of}${topic === undefined ? "" : ` for topic '${topic}'`}: ${detail}`
  }
}

/**
 * The record that bytes are a part of: its headers, and the topic that it was read from, may say how to read them. Headers are parsed when they are looked at. The topic is that
 * of the copy for a record from a retry or dead letter topic, and absent where bytes are of no record.
 */
export type Source = Pick<ConsumerRecord, "headers"> & Partial<Pick<ConsumerRecord, "topic">>

/** Decodes and encodes values of one type. */
export interface Serde<A> {
  /** Shown in errors, logs and headers. */
  readonly name: string
  /** Bytes to a value. null is a tombstone, or "no key". Never throws. */
  readonly decode: (bytes: Uint8Array | null, source?: Source) => Result.Result<A, DecodeFailure>
  /** A value to bytes. Never throws. */
  readonly encode: (value: A) => Result.Result<Uint8Array | null, EncodeFailure>
  /** Headers without which a record of this value cannot be decoded. Default: none. */
  readonly headers?: (value: A) => ReadonlyArray<Header>
  /**
   * The effect that these bytes need before they can be decoded, such as the fetch of a schema; undefined when they need none, as nearly always. It does not
   * fail: it lasts as long as an outage does. A partition handles the records before this one and then waits for the effect. It ends the effect when it stops.
   * Default: none.
   */
  readonly prepare?: (bytes: Uint8Array | null, source?: Source) => Effect.Effect<void> | undefined
}

/** A serde of some type. Methods, so that every serde is one; a value of another type is refused by the serde itself. */
export interface Any extends Pick<Serde<unknown>, "name" | "decode" | "prepare"> {
  /** As that of `Serde`. */
  encode(value: unknown): ReturnType<Serde<unknown>["encode"]>
  /** As those of `Serde`. */
  headers?(value: unknown): ReadonlyArray<Header>
}

/**
 * A serde from two plain functions; both fail by throwing. Throws `ConfigurationValidation` where one is missing. null never reaches `decode`: it is a `DecodeFailure`, unless the serde
 * is wrapped in `nullable`.
 */
export const make = <A>(options: {
  readonly name: string
  readonly decode: (bytes: Uint8Array, source?: Source) => A
  readonly encode: (value: A) => Uint8Array
}): Serde<A> => {
  Kinds.refuse(Kinds.functionsOfSerde("Serde.make", options))
  return fromFunctions(options)
}

const fromFunctions = <A>(options: Parameters<typeof make<A>>[0]): Serde<A> => ({
  name: options.name,
  decode: (bytes, source) => {
    if (bytes === null) return Result.fail(tombstone(options.name))
    try {
      return Result.succeed(UserFunction.plain("decode", options.decode(bytes, source)))
    } catch (thrown) {
      return Result.fail(new DecodeFailure(problem(options.name, thrown)))
    }
  },
  encode: (value) => {
    try {
      const encoded: unknown = UserFunction.plain("encode", options.encode(value))
      if (isBytes(encoded)) return Result.succeed(encoded)
      throw new TypeError(`encode returned ${UserFunction.kindOf(encoded)}; a Uint8Array is expected`)
    } catch (thrown) {
      return Result.fail(new EncodeFailure(problem(options.name, thrown)))
    }
  }
})

/** The bytes as they are; null stays null. */
export const bytes: Serde<Uint8Array | null> = {
  name: "bytes",
  decode: Result.succeed,
  encode: (value) =>
    isBytesOrNull(value) ? Result.succeed(value) : Result.fail(new EncodeFailure(notOfKind("bytes", value)))
}

/** Text in UTF-8. Bytes that are not UTF-8, and text that UTF-8 cannot carry (a lone surrogate), are failures; zero bytes are the empty text. */
export const string: Serde<string> = make({
  name: "string",
  decode: (bytes) => textDecoder.decode(bytes),
  encode: (value) => {
    if (typeof value !== "string") throw new TypeError(notOfKind("string", value).detail)
    if (!value.isWellFormed()) throw new Error("text with a lone surrogate has no UTF-8 form")
    return textEncoder.encode(value)
  }
})

/** null in, null out; everything else goes to `serde`. For compacted topics with tombstones, and for keys that may be missing. */
export const nullable = <A>(serde: Serde<A>): Serde<A | null> => {
  Kinds.refuse(Kinds.serde("Serde.nullable", serde))
  const { headers, prepare } = serde
  return {
    name: `nullable(${serde.name})`,
    decode: (bytes, source) => (bytes === null ? Result.succeed(null) : serde.decode(bytes, source)),
    encode: (value) => (value === null ? Result.succeed(null) : serde.encode(value)),
    ...(headers && { headers: (value) => (value === null ? [] : headers(value)) }),
    ...(prepare && { prepare: (bytes, source) => (bytes === null ? undefined : prepare(bytes, source)) })
  }
}

/**
 * JSON in UTF-8, checked against a schema. Types that JSON does not have (`Schema.Date`, `Schema.BigInt`, ...) take their
 * canonical JSON form. Unknown properties are ignored. The text `null` decodes when the schema takes null. JSON numbers are
 * doubles: carry 64-bit integers as text.
 */
export const json = <A, I>(schema: Schema.Codec<A, I>): Serde<A> => {
  Kinds.refuse(Kinds.schema("Serde.json", schema))
  return checked(Schema.toCodecJson(schema), {
    name: "json",
    decode: (bytes) => {
      if (bytes.length === 0) throw new Error("zero bytes are not JSON")
      return JSON.parse(jsonDecoder.decode(bytes))
    },
    encode: (encoded) => textEncoder.encode(JSON.stringify(encoded))
  })
}

/**
 * A format of your own, checked against a schema: the two functions turn bytes into what the schema decodes, and what it encodes into bytes. Both fail by
 * throwing. A value that does not fit is a failure that names each problem with its path.
 */
export const checked = <A, I>(
  schema: Schema.Codec<A, I>,
  format: {
    readonly name: string
    readonly decode: (bytes: Uint8Array, source?: Source) => unknown
    readonly encode: (encoded: I) => Uint8Array
  }
): Serde<A> => {
  Kinds.refuse([...Kinds.schema("Serde.checked", schema), ...Kinds.functionsOfSerde("Serde.checked", format)])
  // Good records stop at nothing; collecting all problems of a bad one is a second pass, since it slows down the first by half.
  const decode = Schema.decodeUnknownResult(schema)
  const decodeAll = Schema.decodeUnknownResult(schema, { errors: "all" })
  const encode = Schema.encodeResult(schema, { errors: "all" })
  return fromFunctions({
    name: format.name,
    decode: (bytes, source) => {
      const encoded = format.decode(bytes, source)
      return Result.getOrThrowWith(
        Result.orElse(decode(encoded), () => decodeAll(encoded)),
        (error) => new Mismatch(error)
      )
    },
    encode: (value) => format.encode(Result.getOrThrowWith(encode(value), (error) => new Mismatch(error, toEncode)))
  })
}

const textEncoder = new TextEncoder()
/** Keeps a byte order mark, so that decoding and encoding again gives the same bytes. */
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
/** Drops a byte order mark, which JSON.parse does not take. */
const jsonDecoder = new TextDecoder("utf-8", { fatal: true })

const maxProblems = 20

/** Carries the problems that a schema found out of the plain functions of `json`. */
class Mismatch extends Error {
  readonly path: string
  constructor(error: Schema.SchemaError, leafHook = SchemaIssue.defaultLeafHook) {
    const { issues } = SchemaIssue.makeFormatterStandardSchemaV1({ leafHook })(error.issue)
    const lines = issues
      .slice(0, maxProblems)
      .map((issue) => (issue.path?.length ? `${issue.message} at ${formatPath(issue.path)}` : issue.message))
    if (issues.length > maxProblems) lines.push(`and ${issues.length - maxProblems} more`)
    super(lines.join("; "))
    this.path = formatPath(issues[0]?.path ?? [])
  }
}

/** Values of a class are its instances: a plain object of the same shape is none, which the compiler does not tell. */
const toEncode: SchemaIssue.LeafHook = (issue) => {
  const text = SchemaIssue.defaultLeafHook(issue)
  const name = issue._tag === "InvalidType" ? classOf(issue.ast.annotations) : undefined
  return name === undefined ? text : `${text}: pass an instance of the class, such as new ${name}(…)`
}

/** Effect notes the way from fields to an instance at each schema of a class. */
const classOf = (annotations: { readonly identifier?: unknown; readonly "~constructor"?: unknown } | undefined) =>
  annotations?.["~constructor"] !== undefined && typeof annotations.identifier === "string"
    ? annotations.identifier
    : undefined

const formatPath = (path: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }>): string =>
  path
    .map((segment) => (typeof segment === "object" ? segment.key : segment))
    .map((key) => (typeof key === "string" ? `[${JSON.stringify(key)}]` : `[${String(key)}]`))
    .join("")

const problem = (serde: string, thrown: unknown) => {
  if (thrown instanceof Mismatch) return { serde, path: thrown.path, detail: thrown.message }
  const { className, message } = Failure.fromUnknown(thrown)
  return { serde, path: "", detail: message === "" ? className : message }
}

/** For programs whose types do not hold: the mistake is named, and the value is not shown. */
const notOfKind = (serde: "bytes" | "string", value: unknown) => {
  const allowed = serde === "bytes" ? "a Uint8Array or null" : "a string"
  return { serde, path: "", detail: `Expected ${allowed}, got ${UserFunction.kindOf(value)}` }
}

const tombstone = (serde: string): DecodeFailure =>
  new DecodeFailure({
    serde,
    path: "",
    detail: "null arrived: a tombstone, or a record without a key; use Serde.nullable"
  })
