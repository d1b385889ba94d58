/**
 * Schema resolution for pairs of schemas that `avsc` refuses. `avsc` refuses a pair when any branch or symbol of the writer has no counterpart in the
 * reader. Avro for Java, and this file, refuse only a value that has such a branch or symbol.
 */
import avro from "avsc"

/** A value with the position behind it; -1 when the bytes end too early. */
interface Decoded {
  readonly value: unknown
  readonly offset: number
}

type Decode = (buffer: Buffer, position: number) => Decoded

/** Decoders of records by writer and reader, so that recursive schemas end. */
type Known = Map<avro.Type, Map<avro.Type, Decode>>

/** Makes a decoder of values that `writer` wrote, as values of `reader`. Throws when no value can be read. */
export const decoderOf = (writer: avro.Type, reader: avro.Type): ((body: Buffer) => unknown) => {
  const decode = resolve(writer, reader, new Map())
  return (body) => {
    const { value, offset } = decode(body, 0)
    if (offset < 0) throw new Error("truncated buffer")
    if (offset < body.length) throw new Error("trailing data")
    return value
  }
}

const resolve = (writer: avro.Type, reader: avro.Type, known: Known): Decode => {
  try {
    const resolver = reader.createResolver(writer, { ignoreNamespaces: true })
    return (buffer, position) => reader.decode(buffer, position, resolver)
  } catch (refusal) {
    const decode = resolveParts(writer, reader, known)
    if (decode === undefined) throw refusal
    return decode
  }
}

/** Resolves the parts of two types separately; undefined for types that have no parts in common. */
const resolveParts = (writer: avro.Type, reader: avro.Type, known: Known): Decode | undefined => {
  if (isUnion(writer)) return fromUnion(writer, reader, known)
  if (isUnion(reader)) return intoUnion(writer, reader, known)
  if (isRecord(writer) && isRecord(reader)) {
    return haveOneName(writer, reader) ? recordOf(writer, reader, known) : undefined
  }
  if (isEnum(writer) && isEnum(reader)) return haveOneName(writer, reader) ? enumOf(writer, reader) : undefined
  if (isArray(writer) && isArray(reader)) {
    const item = lazily(() => resolve(writer.itemsType, reader.itemsType, known))
    return (buffer, position) => readBlocks(buffer, position, item)
  }
  return isMap(writer) && isMap(reader)
    ? mapOf(lazily(() => resolve(writer.valuesType, reader.valuesType, known)))
    : undefined
}

/** A part that cannot be resolved fails when a value has it. */
const lazily = (make: () => Decode): Decode => {
  try {
    return make()
  } catch (error) {
    return () => {
      throw error
    }
  }
}

const fromUnion = (writer: Union, reader: avro.Type, known: Known): Decode => {
  const branches = writer.types.map((branch) => lazily(() => resolve(branch, reader, known)))
  return (buffer, position) => {
    const { value: index, offset } = long.decode(buffer, position)
    if (offset < 0) return truncated
    const branch = branches[index]
    if (branch === undefined) throw new Error(`invalid union index: ${index}`)
    return branch(buffer, offset)
  }
}

/** The first branch of the reader that can hold values of the writer. */
const intoUnion = (writer: avro.Type, reader: Union, known: Known): Decode | undefined => {
  for (const branch of reader.types) {
    const decode = resolveParts(writer, branch, known)
    if (decode === undefined) continue
    if (!avro.Type.isType(reader, "union:wrapped")) return decode
    const name = String(branch.branchName)
    return (buffer, position) => {
      const { value, offset } = decode(buffer, position)
      return { value: { [name]: value }, offset }
    }
  }
  return undefined
}

const recordOf = (writer: Record, reader: Record, known: Known): Decode => {
  const before = known.get(writer)?.get(reader)
  if (before !== undefined) return before
  let decode: Decode | undefined
  const byReader = known.get(writer) ?? new Map<avro.Type, Decode>()
  known.set(writer, byReader)
  byReader.set(reader, (buffer, position) => decode!(buffer, position))
  const written = new Set(writer.fields.map(({ name }) => name))
  const sourceOf = ({ name, aliases }: Field) => [name, ...aliases].find((each) => written.has(each))
  const targets = new Map(reader.fields.map((field) => [sourceOf(field), field]))
  const defaults = reader.fields.filter((field) => sourceOf(field) === undefined)
  const missing = defaults.find((field) => field.defaultValue() === undefined)
  if (missing !== undefined) throw new Error(`no matching field for default-less ${reader.name}.${missing.name}`)
  const steps = writer.fields.map(({ name, type }) => {
    const target = targets.get(name)
    return target === undefined
      ? { name: undefined, decode: skipping(type) }
      : { name: target.name, decode: resolve(type, target.type, known) }
  })
  decode = (buffer, position) => {
    const entries: Array<readonly [string, unknown]> = []
    let offset = position
    for (const step of steps) {
      const field = step.decode(buffer, offset)
      if (field.offset < 0) return truncated
      offset = field.offset
      if (step.name !== undefined) entries.push([step.name, field.value])
    }
    for (const field of defaults) entries.push([field.name, field.defaultValue()])
    return { value: Object.fromEntries(entries), offset }
  }
  return decode
}

const skipping =
  (type: avro.Type): Decode =>
  (buffer, position) =>
    type.decode(buffer, position)

/** `avsc` resolves enums with a default itself. */
const enumOf = (writer: Enum, reader: Enum): Decode => {
  const symbols = new Set(reader.symbols)
  return (buffer, position) => {
    const decoded: Decoded = writer.decode(buffer, position)
    if (decoded.offset >= 0 && !symbols.has(String(decoded.value))) {
      throw new Error(
        `the symbol ${decoded.value} of ${writer.name} is none of the reader's: ${reader.symbols.join(", ")}`
      )
    }
    return decoded
  }
}

const mapOf = (value: Decode): Decode => {
  const entry: Decode = (buffer, position) => {
    const key = string.decode(buffer, position)
    if (key.offset < 0) return truncated
    const decoded = value(buffer, key.offset)
    return { value: [key.value, decoded.value], offset: decoded.offset }
  }
  return (buffer, position) => {
    const { value, offset } = readBlocks(buffer, position, entry)
    return { value: Object.fromEntries(value as ReadonlyArray<readonly [string, unknown]>), offset }
  }
}

/** Arrays and maps are written in blocks: a count, its size in bytes when the count is negative, and the entries. A count of 0 ends them. */
const readBlocks = (buffer: Buffer, position: number, entry: Decode) => {
  const value: Array<unknown> = []
  let offset = position
  const readLong = (): number => {
    const read = long.decode(buffer, offset)
    offset = read.offset
    return read.value
  }
  for (;;) {
    const count = readLong()
    if (offset < 0) return { value, offset }
    if (count === 0) return { value, offset }
    if (count < 0) readLong()
    for (let left = Math.abs(count); left > 0; left--) {
      if (offset < 0) return { value, offset }
      const decoded = entry(buffer, offset)
      offset = decoded.offset
      value.push(decoded.value)
    }
    if (offset < 0) return { value, offset }
  }
}

const long = avro.Type.forSchema("long")
const string = avro.Type.forSchema("string")
const truncated: Decoded = { value: undefined, offset: -1 }

type Union = avro.types.UnwrappedUnionType | avro.types.WrappedUnionType
type Record = avro.types.RecordType
type Field = Record["fields"][number]
type Enum = avro.types.EnumType

const isUnion = (type: avro.Type): type is Union => avro.Type.isType(type, "union")
const isRecord = (type: avro.Type): type is Record => avro.Type.isType(type, "record", "error")
const isEnum = (type: avro.Type): type is Enum => avro.Type.isType(type, "enum")
const isArray = (type: avro.Type): type is avro.types.ArrayType => avro.Type.isType(type, "array")
const isMap = (type: avro.Type): type is avro.types.MapType => avro.Type.isType(type, "map")

/** As in Java's Avro, names match without their namespaces. */
const haveOneName = (writer: avro.Type, reader: avro.Type): boolean =>
  [reader.name, ...(reader.aliases ?? [])].map(simpleName).includes(simpleName(writer.name))

const simpleName = (name: string | undefined): string | undefined => name?.slice(name.lastIndexOf(".") + 1)
