/**
 * Serdes for Avro in the wire format of a schema registry, in which each record names the schema that it was written with.
 *
 * The schema of a new id is fetched before the record is handed over. The record's partition waits for it, however long the registry is unavailable. An
 * unknown id, and bytes that do not fit their schema, are a `DecodeFailure`: the record is dead-lettered with its bytes.
 */
import { type EventBusError, Serde } from "@eventbus/core"
import { RegistrySerde, SchemaRegistry, type UnusableSchema } from "@eventbus/schema-registry"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as AvroTypes from "./internal/avroTypes.ts"

/** How to read and write values. */
export interface Options extends RegistrySerde.WriteOptions {
  /**
   * The program's Avro schema (the reader's schema), as JSON text or data. Values of other versions are resolved to it, and values are written with it.
   * Default none: each value is read with the schema that it was written with, and nothing can be written.
   */
  readonly schema?: string | object
  /** The type of 64-bit integers. With `"number"`, an integer beyond 2^53 is a failure. Default `"number"`. */
  readonly longs?: AvroTypes.Longs
}

/**
 * A serde whose values `schema` checks. The encoded side of `schema` holds what Avro reads: objects for records, text for enums, `Uint8Array` for bytes and
 * fixed, the value itself for a union (`{ "name.of.the.Branch": value }` where branches cannot be told apart), and the plain value for logical types. Fails
 * with `UnusableSchema` when `options.schema` is no Avro schema, or when the registry does not have it under `subject`.
 */
export const serde = Effect.fnUntraced(function* <A, I>(
  schema: Schema.Codec<A, I>,
  options: Options = {}
): Effect.fn.Return<Serde.Serde<A>, UnusableSchema.UnusableSchema, SchemaRegistry.SchemaRegistry> {
  const registry = yield* SchemaRegistry.SchemaRegistry
  const { longs = "number", subject } = options
  const own = options.schema === undefined ? undefined : yield* ownSchema(options.schema, longs)
  const writerId =
    own === undefined || subject === undefined
      ? undefined
      : yield* registry.idOf({ ...options, subject, schema: own.text, type: "AVRO" })
  const { decode, frame, prepare } = RegistrySerde.make(registry, {
    type: "AVRO",
    readerOf: (registered) => AvroTypes.decoder(AvroTypes.makeWriter(registered, longs), own?.type),
    writerId
  })
  const encode = (encoded: I) => frame(own === undefined ? new Uint8Array() : AvroTypes.encode(own.type, encoded))
  return { ...Serde.checked(schema, { name: "avro", decode, encode }), prepare }
})

/**
 * Avro with the registry at `url`, or JSON when `url` is undefined (resilient consumer seed "Message Formats"). Fails as `serde` and `SchemaRegistry.make`
 * do.
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

const ownSchema = (schema: string | object, longs: AvroTypes.Longs) =>
  RegistrySerde.ownSchema(() => {
    const text = typeof schema === "string" ? schema : JSON.stringify(schema)
    return { text, type: AvroTypes.make({ schema: text, references: [] }, longs) }
  })
