/**
 * Serdes for Avro in the wire format of a schema registry, in which each record names the schema that it was written with.
 *
 * The schema of a new id is fetched before the record is handed over. The record's partition waits for it, however long the registry is unavailable. An
 * unknown id, and bytes that do not fit their schema, are a `DecodeFailure`: the record is dead-lettered with its bytes.
 */
import { type EventBusError, Serde } from "@eventbus/core"
import { Effect, Result, type Schema, type Scope } from "effect"
import type { HttpClient } from "effect/http"
import * as AvroTypes from "./internal/avroTypes.ts"
import * as WireFormat from "./internal/wireFormat.ts"
import * as SchemaRegistry from "./SchemaRegistry.ts"
import { UnusableSchema } from "./UnusableSchema.ts"

/** How to read and write values. */
export interface Options {
  /**
   * The program's Avro schema (the reader's schema), as JSON text or data. Values of other versions are resolved to it, and values are written with it.
   * Default none: each value is read with the schema that it was written with, and nothing can be written.
   */
  readonly schema?: string | object
  /** The subject of `schema`, such as `orders-value`. Writing needs it; its id is requested when the serde is made. Default none. */
  readonly subject?: string
  /** Registers `schema` under `subject` when it is missing there. Default `false`: a missing schema is an error. Confluent: `auto.register.schemas`. */
  readonly register?: boolean
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
): Effect.fn.Return<Serde.Serde<A>, UnusableSchema, SchemaRegistry.SchemaRegistry> {
  const registry = yield* SchemaRegistry.SchemaRegistry
  const { longs = "number" } = options
  const own = options.schema === undefined ? undefined : yield* ownSchema(options.schema, longs)
  const id = yield* writerId(registry, own?.text, options)
  const readers = new Map<number, Reader>()
  return {
    ...Serde.checked(schema, {
      name: "avro",
      decode: (bytes) => {
        const { id, body } = WireFormat.read(bytes)
        const reader = readers.get(id)
        if (reader !== undefined) return reader(body)
        throw registry.refusal(id) ?? new Error(`schema ${id} was not fetched (Serde.prepare)`)
      },
      encode: (encoded) => {
        if (own === undefined || id === undefined) throw new Error("a schema and its subject are needed for writing")
        return WireFormat.write(id, AvroTypes.encode(own.type, encoded))
      }
    }),
    prepare: (bytes) => {
      const id = WireFormat.idOf(bytes)
      if (id === undefined || readers.has(id)) return undefined
      return Effect.match(registry.byId(id), {
        onSuccess: (registered) => readers.set(id, readerOf(registered, own?.type, longs)),
        onFailure: () => {}
      })
    }
  }
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
  UnusableSchema | EventBusError.ConfigurationValidation,
  HttpClient.HttpClient | Scope.Scope
> =>
  url === undefined
    ? Effect.succeed(Serde.json(schema))
    : Effect.provideServiceEffect(
        serde(schema, options),
        SchemaRegistry.SchemaRegistry,
        SchemaRegistry.make({ ...options, url })
      )

type Reader = (body: Uint8Array) => unknown

/** The reader of an unusable schema fails for each record. */
const readerOf = (
  registered: SchemaRegistry.RegisteredSchema,
  own: AvroTypes.Type | undefined,
  longs: AvroTypes.Longs
): Reader =>
  Result.getOrElse(
    Result.try(() => AvroTypes.decoder(AvroTypes.makeWriter(registered, longs), own)),
    (thrown) => () => {
      throw new Error(`schema ${registered.id} cannot be used: ${messageOf(thrown)}`)
    }
  )

const ownSchema = (schema: string | object, longs: AvroTypes.Longs) => {
  const text = typeof schema === "string" ? schema : JSON.stringify(schema)
  return Effect.try({
    try: () => ({ text, type: AvroTypes.make({ schema: text, references: [] }, longs) }),
    catch: (thrown) => new UnusableSchema({ schema: "the schema of the program", detail: messageOf(thrown) })
  })
}

const writerId = (
  registry: SchemaRegistry.SchemaRegistry["Service"],
  schema: string | undefined,
  { subject, register = false }: Options
): Effect.Effect<number | undefined, UnusableSchema> =>
  subject === undefined || schema === undefined
    ? Effect.succeed(undefined)
    : registry.idOf({ subject, schema, register })

const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown))
