/**
 * The schema as JSON Schema (draft 7), for completion and checks in editors. The package publishes it as `eventbus.schema.json`.
 *
 * It knows every spelling of every key and accepts `${NAME}` for any value. It requires no key, since a profile need not repeat the keys of the file
 * below it. The loader has the last word.
 */
import type * as Leaves from "./internal/schema/leaves.ts"
import * as Shape from "./internal/schema/shape.ts"
import * as Settings from "./Settings.ts"
/** A JSON value. */

export type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [key: string]: Json }

interface Section {
  readonly [key: string]: Json
}

const variable: Section = { type: "string", pattern: "\\$\\{.+\\}" }

const leaf = (info: Leaves.SettingInfo): Section => {
  const { allowed, json, description, fallback } = info
  const isText = json["type"] === "string"
  return {
    description: `${description} Allowed: ${allowed}.`,
    ...(fallback === undefined ? {} : { default: fallback as Json }),
    ...(isText ? { type: "string" } : { anyOf: [json as Section, variable] })
  }
}

const struct = ({ keys, spellings, description }: Shape.Struct): Section => ({
  type: "object",
  description,
  additionalProperties: false,
  properties: Object.fromEntries(
    Array.from(spellings, ([spelling, key]) => {
      const { shape, required } = keys.get(key)!
      const property = { title: key, ...describe(shape) }
      return [spelling, required ? { ...property, description: `Required. ${Shape.description(shape)}` } : property]
    })
  )
})

const describe = (shape: Shape.Shape): Section => {
  switch (shape._tag) {
    case "Leaf":
      return leaf(shape.info)
    case "Struct":
      return struct(shape)
    case "Dictionary":
      return { type: "object", description: shape.description, additionalProperties: describe(shape.value) }
    case "List":
      return { type: "array", description: shape.description, items: describe(shape.item) }
    case "Either":
      return { description: shape.description, anyOf: shape.options.map(describe) }
  }
}

/** The whole schema document. */
export const document: Section = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "Event Bus Connector",
  ...describe(Shape.make(Settings.Root.ast)),
  // Keys that begin with `x-` hold anchors.
  patternProperties: { "^x-": {} }
}

/** Without other spellings and without `${NAME}`, neither of which a document for programs needs. */
const plain = (json: Json): Json => {
  if (isList(json)) return json.filter((each) => each !== variable).map(plain)
  if (typeof json !== "object" || json === null) return json
  const entries = Object.entries(json).flatMap(([key, value]): ReadonlyArray<readonly [string, Json]> => {
    if (key === "additionalProperties" && value === false) return []
    if (key !== "properties") return [[key, plain(value)]]
    const own = Object.entries(value as Section).filter(([name, each]) => (each as Section)["title"] === name)
    return [[key, plain(Object.fromEntries(own))]]
  })
  return Object.fromEntries(entries)
}

const isList = (json: Json): json is ReadonlyArray<Json> => Array.isArray(json)

const binding = plain(describe(Shape.make(Settings.Binding.ast))) as Section

/** The schema of a binding that says its own name, as `Configuration.parseNamedBinding` reads it, in the canonical spelling of every key. */
export const namedBinding: Section = {
  ...binding,
  required: ["name", "topic", "groupId"],
  properties: {
    name: { type: "string", minLength: 1, description: "Name of the binding." },
    ...(binding["properties"] as Section)
  }
}
