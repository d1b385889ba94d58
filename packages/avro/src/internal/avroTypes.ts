/**
 * Avro types as `avsc` has them. What does not fit is thrown, with a message that says where.
 */
import avro from "avsc"

export type Type = avro.Type

/** What a 64-bit integer becomes. */
export type Longs = "number" | "bigint"

export interface Source {
  /** An Avro schema as JSON text. */
  readonly schema: string
  /** The schemas that it refers to, each behind those that it refers to itself. */
  readonly references: ReadonlyArray<string>
}

export const make = ({ schema, references }: Source, longs: Longs): avro.Type => {
  // Names come from outside: no prototype they could hit.
  const registry: Record<string, avro.Type> = Object.assign(
    Object.create(null),
    longs === "bigint" ? { long: bigintLong } : undefined
  )
  const parse = (text: string) => avro.Type.forSchema(JSON.parse(text), { registry, omitRecordMethods: true })
  for (const each of references) parse(each)
  return parse(schema)
}

/** How values that were written as `writer` are read as `reader`; by itself, where there is no other. */
export const decoder = (writer: avro.Type, reader: avro.Type | undefined): ((body: Uint8Array) => unknown) => {
  if (reader === undefined) return (body) => writer.fromBuffer(bufferOf(body))
  // As on the JVM, where records match by their names without namespaces.
  const resolver = reader.createResolver(writer, { ignoreNamespaces: true })
  return (body) => reader.fromBuffer(bufferOf(body), resolver)
}

export const encode = (type: avro.Type, value: unknown): Uint8Array => type.toBuffer(withBuffers(value))

/** `avsc` takes bytes as `Buffer` only. */
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
