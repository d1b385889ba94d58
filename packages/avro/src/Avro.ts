/**
 * Serdes for Avro in the wire format of a schema registry: each record names the schema that it was written with.
 *
 * The schema of an id that is new is fetched before the record is handed over, and its partition waits for it, however long the registry is away. An id that
 * the registry does not know, and bytes that do not fit their schema, are a `DecodeFailure`: dead-lettered with their bytes.
 */
import { type EventBusError, Serde } from "@eventbus/core"
import { Effect, Result, type Schema, type Scope } from "effect"
import type { HttpClient } from "effect/http"
import * as AvroTypes from "./internal/avroTypes.ts"
import * as WireFormat from "./internal/wireFormat.ts"
import * as SchemaRegistry from "./SchemaRegistry.ts"
import { UnusableSchema } from "./UnusableSchema.ts"

export interface Options {
  /**
   * The program's own Avro schema, as JSON text or data: what was written with another version is read as this one says, and values are written with it.
   * Default: each value is read as it was written.
   */
  readonly schema?: string | object
  /** The subject of `schema`, such as `orders-value`: needed for writing, and asked for its id when the serde is made. */
  readonly subject?: string
  /** Registers `schema` under `subject` where it is missing. Default false: that is an error. */
  readonly register?: boolean
  /** What 64-bit integers become. With `"number"`, one beyond 2^53 is a failure. Default `"number"`. */
  readonly longs?: AvroTypes.Longs
}

/**
 * A serde whose values a schema checks. Its encoded side is what Avro gives: records as objects, enums as text, bytes and fixed as `Uint8Array`, the value itself for a
 * union (`{ "name.of.the.Branch": value }` where several branches look alike), and the plain value for logical types.
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

/** Avro by the registry at the URL; JSON where there is no URL (resilient consumer seed "Message Formats"). */
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

/** A schema that cannot be read makes a reader that says so for each record. */
const readerOf = (
  registered: SchemaRegistry.RegisteredSchema,
  own: AvroTypes.Type | undefined,
  longs: AvroTypes.Longs
): Reader =>
  Result.getOrElse(
    Result.try(() => AvroTypes.decoder(AvroTypes.make(registered, longs), own)),
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
