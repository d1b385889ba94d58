/** Avro types of `avsc`. Values and schemas that do not fit are thrown, with a message that says where. */
import avro from "avsc"
import * as Predicate from "effect/Predicate"
import * as Resolution from "./resolution.ts"

export type Type = avro.Type

/** The JavaScript type of a 64-bit integer. */
export type Longs = "number" | "bigint"

/** A schema and the schemas that it refers to. */
export interface Source {
  /** The Avro schema as JSON text. */
  readonly schema: string
  /** Each comes after the schemas that it refers to itself. */
  readonly references: ReadonlyArray<{ readonly schema: string }>
}

/** Throws when the text is no Avro schema. */
export const make = (source: Source, longs: Longs): avro.Type => parse(source, longs, (schema) => schema)

/**
 * The type of a schema that values were written with. Its defaults are ignored, because reading does not use them: registries accept schemas whose
 * defaults do not match their types, and Java's Avro reads such values. Throws when the text is no Avro schema.
 */
export const makeWriter = (source: Source, longs: Longs): avro.Type => parse(source, longs, withoutDefaults)

const parse = ({ schema, references }: Source, longs: Longs, prepare: (schema: unknown) => unknown): avro.Type => {
  // Names come from outside, so the registry has no prototype whose members they could hit.
  const registry: Record<string, avro.Type> = Object.assign(
    Object.create(null),
    longs === "bigint" ? { long: bigintLong } : undefined
  )
  const typeOf = (text: string) =>
    avro.Type.forSchema(prepare(JSON.parse(text)) as avro.Schema, { registry, omitRecordMethods: true })
  // A schema may be referred to by several names.
  for (const each of new Set(references.map(({ schema }) => schema))) typeOf(each)
  return typeOf(schema)
}

/** The schema without the defaults of its fields. */
const withoutDefaults = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(withoutDefaults)
  if (!Predicate.isObject(schema)) return schema
  const parts = Object.entries(schema).map(([key, value]) => {
    if (key === "type" || key === "items" || key === "values") return [key, withoutDefaults(value)]
    return [key, key === "fields" && Array.isArray(value) ? value.map(fieldWithoutDefault) : value]
  })
  return Object.fromEntries(parts)
}

const fieldWithoutDefault = (field: unknown): unknown => {
  if (!Predicate.isObject(field)) return field
  const { default: _, ...rest } = withoutDefaults(field) as { readonly default?: unknown }
  return rest
}

/** Reads values that were written as `writer`, resolved to `reader` where there is one. Throws when the two are incompatible. */
export const decoder = (writer: avro.Type, reader: avro.Type | undefined): ((body: Uint8Array) => unknown) => {
  if (reader === undefined) return (body) => writer.fromBuffer(bufferOf(body))
  const decode = Resolution.decoderOf(writer, reader)
  return (body) => decode(bufferOf(body))
}

/** Throws when the value does not fit the type. */
export const encode = (type: avro.Type, value: unknown): Uint8Array => type.toBuffer(withBuffers(value))

/** `avsc` accepts bytes as `Buffer` only. */
const withBuffers = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return bufferOf(value)
  if (Array.isArray(value)) return value.map(withBuffers)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withBuffers(each)]))
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength)

const bigintLong = avro.types.LongType.__with({
  fromBuffer: (buffer: Buffer) => buffer.readBigInt64LE(),
  toBuffer: (value: bigint) => {
    const buffer = Buffer.alloc(8)
    buffer.writeBigInt64LE(value)
    return buffer
  },
  fromJSON: BigInt,
  toJSON: Number,
  isValid: (value: unknown) => typeof value === "bigint" && BigInt.asIntN(64, value) === value,
  compare: (one: bigint, other: bigint) => Number(one > other) - Number(one < other)
})
