/** Checks values by a JSON Schema, with `ajv`. */
import { Ajv, type AnySchema, type ErrorObject, type Options } from "ajv"
import { Ajv2019 } from "ajv/dist/2019.js"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Predicate from "effect/Predicate"

/** A schema and the schemas that it refers to, as JSON text. */
export interface Source {
  readonly schema: string
  readonly references: ReadonlyArray<{ readonly name: string; readonly schema: string }>
}

/** Answers with the value, or throws with the first problem and its path. Throws when the text is no JSON Schema. */
export const make = ({ schema: text, references }: Source): ((value: unknown) => unknown) => {
  const schema = schemaOf(text)
  const ajv = ajvOf(schema)
  for (const [key, referred] of keyed(schema, references)) ajv.addSchema(referred, key)
  const validate = ajv.compile(schema)
  return (value) => {
    if (validate(value)) return value
    throw new Error(`the value does not fit its JSON Schema: ${describe(validate.errors?.[0])}`)
  }
}

/** The schemas that `schema` refers to, by what a `$ref` may say: the name, and what a relative name means beside the `$id` of the schema. */
const keyed = (schema: AnySchema, references: Source["references"]): ReadonlyMap<string, AnySchema> => {
  const byKey = new Map<string, AnySchema>()
  const base = idOf(schema)
  for (const { name, schema: text } of references) {
    const resolved = idOf(schemaOf(text)) === undefined ? URL.parse(name, base)?.href : undefined
    // `ajv` keeps the base of an object that it knows, so each key has its own.
    for (const key of [name, resolved ?? name]) byKey.set(key, byKey.get(key) ?? schemaOf(text))
  }
  return byKey
}

const idOf = (schema: AnySchema): string | undefined =>
  Predicate.isObject(schema) && "$id" in schema && typeof schema.$id === "string" ? schema.$id : undefined

const schemaOf = (text: string): AnySchema => {
  const schema: unknown = JSON.parse(text)
  if (typeof schema === "boolean" || (Predicate.isObject(schema) && !Array.isArray(schema))) return schema
  throw new Error("a JSON Schema is an object or a boolean")
}

/** Schemas come from producers in other languages, so a keyword that `ajv` does not know is ignored, as JSON Schema demands. */
const options: Options = { strict: false, validateSchema: false, validateFormats: false, logger: false }

const ajvOf = (schema: AnySchema): Ajv => {
  const dialect = Predicate.isObject(schema) && "$schema" in schema ? schema.$schema : undefined
  switch (typeof dialect === "string" ? dialect.replace(/^https?:\/\//, "").replace(/#$/, "") : undefined) {
    case undefined:
    case "json-schema.org/draft-06/schema":
    case "json-schema.org/draft-07/schema":
    case "json-schema.org/schema":
      return new Ajv(options)
    case "json-schema.org/draft/2019-09/schema":
      return new Ajv2019(options)
    case "json-schema.org/draft/2020-12/schema":
      return new Ajv2020(options)
    default:
      throw new Error(`its $schema is ${JSON.stringify(dialect)}; known are draft-06, draft-07, 2019-09 and 2020-12`)
  }
}

/** The problem with what is allowed, and where it is. Values are not shown. */
const describe = (error: ErrorObject | undefined): string => {
  if (error === undefined) return "no reason is given"
  const { keyword, message = keyword, params, instancePath } = error
  const allowed = params.allowedValues ?? (keyword === "const" ? [params.allowedValue] : undefined)
  const more = params.additionalProperty ?? params.unevaluatedProperty ?? allowed
  const path = instancePath.split("/").slice(1).map(segmentOf).join("")
  return `${message}${more === undefined ? "" : ` (${JSON.stringify(more)})`}${path === "" ? "" : ` at ${path}`}`
}

/** A segment of a JSON pointer as core's serdes write paths: `["items"][0]["price"]`. */
const segmentOf = (segment: string): string =>
  /^\d+$/.test(segment) ? `[${segment}]` : `[${JSON.stringify(segment.replaceAll("~1", "/").replaceAll("~0", "~"))}]`
