/**
 * The kinds of single values in a configuration, as schemas. Each carries its text for messages, editors and documentation.
 */
import { Kinds, Ranges, Time, TopicName } from "@eventbus/core"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaGetter from "effect/SchemaGetter"
import * as Addresses from "./addresses.ts"
import * as Durations from "./durations.ts"

/** Annotations of a setting's schema. */
export interface SettingInfo {
  /** Allowed values, for messages: "allowed is ...". */
  readonly allowed: string
  /** The constraint for editors, as JSON Schema. */
  readonly json: Readonly<Record<string, unknown>>
  /** Meaning and unit. `withDefault` adds the default. */
  readonly description: string
  /** True for a value in milliseconds. */
  readonly isDuration?: boolean
  /** True for a value that no message may show. */
  readonly secret?: boolean
  /** True for a text that never has a comma in it: where the key takes a list too, a variable with commas is one. */
  readonly hasNoComma?: boolean
  /** True for a text that may have a user and a password in front of an `@`. No message shows them. */
  readonly hasUser?: boolean
  /** The default as a file would write it. */
  readonly fallback?: unknown
}

const check = <T>(is: (value: T) => boolean) => Schema.makeFilter<T>((value) => is(value))

/** A part of the configuration; absent, it has the defaults of its keys. */
export const section = <F extends Schema.Struct.Fields>(description: string, fields: F) =>
  Schema.Struct(fields).annotate({ description })

const int32 = 2_147_483_647

/** A whole number. */
export const whole = (description: string, range: Ranges.Range = { minimum: 1, maximum: int32, kind: "whole" }) =>
  Schema.Number.check(check((value) => Ranges.contains(range, value))).annotate({
    allowed: Ranges.inWords(range),
    json: { type: "integer", minimum: range.minimum, maximum: range.maximum },
    description
  })

/** A number that may have a fraction. */
export const decimal = (description: string, range: Ranges.Range) =>
  Schema.Number.check(check((value) => Ranges.contains(range, value))).annotate({
    allowed: Ranges.inWords(range),
    json: {
      type: "number",
      [range.above === true ? "exclusiveMinimum" : "minimum"]: range.minimum,
      ...(range.maximum === Number.MAX_VALUE ? {} : { maximum: range.maximum })
    },
    description
  })

/** Milliseconds, written as a number or as text with a unit. */
export const duration = (description: string, range: Ranges.Range) =>
  Schema.Union([Schema.Number, Schema.String])
    .pipe(
      Schema.decodeTo(Schema.Number.check(check((millis) => Ranges.contains(range, millis))), {
        decode: SchemaGetter.transform((value: number | string) =>
          typeof value === "number" ? value : Time.parse(value)
        ),
        encode: SchemaGetter.transform((millis: number): number | string => millis)
      })
    )
    .annotate({
      allowed: Ranges.inWords(range, '"10s" or "10 seconds"'),
      json: {
        type: ["integer", "string"],
        minimum: range.minimum,
        maximum: range.maximum,
        pattern: "^(P.+|[0-9].*[A-Za-z])$"
      },
      isDuration: true,
      description
    })

export const flag = (description: string) =>
  Schema.Boolean.annotate({ allowed: "true or false", json: { type: "boolean" }, description })

/** One of these texts, exactly. */
export const oneOf = <const L extends ReadonlyArray<string>>(description: string, texts: L) =>
  Schema.Literals(texts).annotate({
    allowed: texts.length === 1 ? texts[0]! : `${texts.slice(0, -1).join(", ")} or ${texts.at(-1)}`,
    texts,
    json: { enum: texts },
    description
  })

/** Text that is not blank. */
export const text = (description: string) =>
  Schema.String.check(check((value) => value.trim().length > 0)).annotate({
    allowed: "a text that is not empty",
    json: { type: "string", minLength: 1 },
    description
  })

const addressTexts = { allowed: 'host:port, such as "kafka-1:9092", several with commas' }

/** Addresses of brokers. */
export const addresses = (description: string) =>
  Schema.String.check(check((value) => Addresses.parse(value) !== undefined)).annotate({
    ...addressTexts,
    json: { type: "string", pattern: ":[0-9]{1,5}" },
    description,
    hasUser: true
  })

/** The same, or an empty text for none, as a variable without a value gives it. */
export const addressesOrNone = (description: string) =>
  Schema.String.check(check((value) => value.trim() === "" || Addresses.parse(value) !== undefined)).annotate({
    ...addressTexts,
    json: { type: "string", pattern: "^\\s*$|:[0-9]{1,5}" },
    description,
    hasUser: true
  })

/** A URL of `http` or `https`. */
export const httpUrl = (description: string) =>
  Schema.String.check(check((value) => Kinds.httpUrl("", value).length === 0)).annotate({
    allowed: "a URL of http or https, without user and password",
    json: { type: "string", pattern: "^[hH][tT][tT][pP][sS]?:" },
    description,
    hasUser: true
  })

/** The name of a topic, or a part of one. */
export const topicName = (description: string) =>
  Schema.String.check(check((value) => TopicName.illegal(value) === undefined)).annotate({
    allowed: "a topic name: 1 to 249 characters out of a-z A-Z 0-9 . _ -",
    json: { type: "string", minLength: 1, maxLength: 249, pattern: "^[a-zA-Z0-9._-]+$" },
    hasNoComma: true,
    description
  })

/** The name of a topic, or a list of names. */
export const topicNames = (description: string) =>
  Schema.Union([
    topicName("The name of a topic."),
    Schema.Array(topicName("The name of a topic."))
      .check(Schema.isMinLength(1))
      .annotate({ description: "Names of topics." })
  ]).annotate({ description })

/** A secret text, which no message shows. */
export const secret = (description: string) =>
  Schema.RedactedFromValue(Schema.String.check(check((value) => value.length > 0))).annotate({
    allowed: "a text that is not empty",
    json: { type: "string", minLength: 1 },
    description,
    secret: true
  })

/**
 * Adds the default of an absent key, as a file would write it. The description of a single value then names it.
 *
 * Unlike `Schema.withDecodingDefaultKey`, this decodes a present value once and decodes the default only one time, since most bindings leave most
 * keys out.
 */
export const withDefault =
  <S extends Schema.Top>(fallback: S["Encoded"]) =>
  (schema: S & Schema.Decoder<S["Type"]>) => {
    let known: { readonly value: S["Type"] } | undefined
    const absent = (): S["Type"] => {
      known ??= { value: Schema.decodeUnknownSync(schema)(fallback) }
      return known.value
    }
    return Schema.optionalKey(schema)
      .pipe(
        Schema.decodeTo(
          Schema.declare((_): _ is S["Type"] => true),
          {
            decode: SchemaGetter.transformOptional((value) => Option.some(Option.getOrElse(value, absent))),
            encode: SchemaGetter.passthrough()
          }
        )
      )
      .annotate({ ...withShownDefault(SchemaAST.resolve(schema.ast) ?? {}, fallback), fallback })
  }

const withShownDefault = (facts: Partial<SettingInfo>, fallback: unknown): Partial<SettingInfo> => {
  // Lists and sections say their default in words of their own.
  if (facts.allowed === undefined) return facts
  const shown = facts.isDuration && typeof fallback === "number" ? Durations.format(fallback) : String(fallback)
  return { ...facts, description: `${facts.description} Default ${shown}.` }
}
