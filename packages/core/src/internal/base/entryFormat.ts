/**
 * The form of all entries of the fleet's topics and of the audit log: JSON with `v`, the version of its writer's format, and `minV`, the least version that a reader needs.
 *
 * A reader takes an entry of a newer writer as far as it knows its fields, keeps the others, and says so when it needs a newer version.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/** The format that this version writes, and the newest that it reads. */
export const version = 1

const Versions = Schema.Struct({ v: Schema.Int, minV: Schema.Int })

/**
 * An entry as it was read.
 *
 * - `Entry`: with its fields as JSON, those that this version does not know included.
 * - `Newer`: it needs a newer reader.
 * - `Malformed`: it is no entry of any version.
 */
export type Decoded<A> =
  | { readonly _tag: "Entry"; readonly entry: A; readonly v: number; readonly fields: Fields }
  | { readonly _tag: "Newer"; readonly v: number }
  | { readonly _tag: "Malformed" }

/** An entry as JSON. */
export type Fields = Readonly<Record<string, unknown>>

const encoder = new TextEncoder()
const utf8 = new TextDecoder()

export const bytesOf = (text: string): Uint8Array => encoder.encode(text)

export const textOf = (bytes: Uint8Array | null): string => (bytes === null ? "" : utf8.decode(bytes))

/** The bytes of an entry. `kept`: the fields of the entry that it replaces, of which those that this version does not know stay. */
export const encode = (entry: object, kept: Fields = {}): Uint8Array =>
  bytesOf(JSON.stringify({ ...kept, ...entry, v: version, minV: 1 }))

const decodeVersions = Schema.decodeUnknownOption(Versions)

/** A decoder of entries whose fields are those of the schema. Never throws. */
export const decoder = <A extends object>(schema: Schema.Codec<A, unknown>) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (bytes: Uint8Array): Decoded<A> => {
    const fields = json(textOf(bytes))
    const versions = Option.getOrUndefined(decodeVersions(fields))
    if (versions === undefined) return { _tag: "Malformed" }
    if (versions.minV > version) return { _tag: "Newer", v: versions.v }
    const entry = Option.getOrUndefined(decode(fields))
    return entry === undefined
      ? { _tag: "Malformed" }
      : { _tag: "Entry", entry, v: versions.v, fields: fields as Fields }
  }
}

const json = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
