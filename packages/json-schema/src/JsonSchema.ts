/**
 * Serdes for JSON in the wire format of a schema registry, in which each record names its JSON Schema.
 *
 * The schema of a new id is fetched before the record is handed over. The record's partition waits for it, however long the registry is unavailable. An unknown id, and a value that
 * its schema or the program's refuses, are a `DecodeFailure`: the record is dead-lettered with its bytes.
 */
import { type EventBusError, Serde } from "@eventbus/core"
import { RegistrySerde, SchemaRegistry, type UnusableSchema } from "@eventbus/schema-registry"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as DerivedSchema from "./internal/derivedSchema.ts"
import * as Json from "./internal/json.ts"
import * as Validator from "./internal/validator.ts"

/** How to read and write values. */
export interface Options extends RegistrySerde.WriteOptions {
  /** The JSON Schema that values are written with, as JSON text or data. Default: one of draft-07 that describes the values of the Effect schema, see `schemaOf`. */
  readonly schema?: string | object
  /** The registered schemas that `schema` refers to by `$ref`, when it is registered. Default none. */
  readonly references?: ReadonlyArray<SchemaRegistry.Reference>
  /**
   * Checks each value that is read by the JSON Schema that its record names, and each value that is written by `schema`. Drafts 6, 7, 2019-09 and 2020-12 are known. `format` says
   * nothing about a value. With `false`, the Effect schema alone decides. Default `true`. Confluent: `json.fail.invalid.schema`.
   */
  readonly validate?: boolean
}

/**
 * A serde whose values `schema` checks. Types that JSON does not have (`Schema.Date`, `Schema.BigInt`, ...) take their canonical JSON form, as in `Serde.json`. Fails with
 * `UnusableSchema` when `options.schema` is no JSON Schema, or when the registry does not have it under `subject`.
 */
export const serde = Effect.fnUntraced(function* <A, I>(
  schema: Schema.Codec<A, I>,
  options: Options = {}
): Effect.fn.Return<Serde.Serde<A>, UnusableSchema.UnusableSchema, SchemaRegistry.SchemaRegistry> {
  const registry = yield* SchemaRegistry.SchemaRegistry
  const { validate = true, subject, references = [] } = options
  const own = yield* RegistrySerde.ownSchema(() => {
    const text = textOf(options.schema ?? schemaOf(schema))
    // The schemas behind references are in the registry, so what is written by such a schema is checked by the Effect schema alone.
    return {
      text,
      check: validate && references.length === 0 ? Validator.make({ schema: text, references: [] }) : unchecked
    }
  })
  const writerId =
    subject === undefined
      ? undefined
      : yield* registry.idOf({ ...options, subject, schema: own.text, type: "JSON", references })
  const { decode, frame, prepare } = RegistrySerde.make(registry, {
    type: "JSON",
    readerOf: (registered) => {
      const check = validate ? Validator.make(registered) : unchecked
      return (body) => check(Json.parse(body))
    },
    writerId
  })
  const encode = (encoded: unknown) => frame(Json.print(own.check(encoded)))
  return { ...Serde.checked(Schema.toCodecJson(schema), { name: "json-schema", decode, encode }), prepare }
})

/**
 * `serde` with the registry at `url`, or JSON without a schema registry when `url` is undefined. Fails as `serde` and `SchemaRegistry.make` do.
 */
export const orJson = <A, I>(
  url: string | undefined,
  schema: Schema.Codec<A, I>,
  options: Options & Omit<SchemaRegistry.Options, "url"> = {}
): Effect.Effect<
  Serde.Serde<A>,
  UnusableSchema.UnusableSchema | EventBusError.ConfigurationValidation,
  HttpClient.HttpClient | Scope.Scope
> => RegistrySerde.orJson(url, schema, options, serde(schema, options))

/** The JSON Schema of the values of an Effect schema, draft-07, as `serde` registers it. Further properties are allowed. */
export const schemaOf: <A, I>(schema: Schema.Codec<A, I>) => object = DerivedSchema.make

const unchecked = (value: unknown): unknown => value

const textOf = (schema: string | object): string => (typeof schema === "string" ? schema : JSON.stringify(schema))
