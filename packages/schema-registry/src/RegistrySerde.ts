/**
 * The parts that serdes of all formats share: the wire format, and the schema of each record, which is fetched once before its first record is handed over. Use it for a format of your
 * own; Avro, JSON Schema and Protobuf have packages.
 */
import { type EventBusError, Serde } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Frame from "./internal/frame.ts"
import * as SchemaRegistry from "./SchemaRegistry.ts"
import { UnusableSchema } from "./UnusableSchema.ts"

/** The subject that values are written under. */
export interface WriteOptions {
  /** The subject of the schema, such as `orders-value`. Writing needs it; its id is requested when the serde is made. Default none. */
  readonly subject?: string
  /** Registers the schema under `subject` when it is missing there. Default `false`: a missing schema is an error. Confluent: `auto.register.schemas`. */
  readonly register?: boolean
  /**
   * Asks the registry first whether the schema is compatible with the latest one of `subject`; the failure lists what is not. Without it, only a registration fails,
   * by the rule of the subject. Default `false`.
   */
  readonly checkCompatibility?: boolean
}

/** One format of values. */
export interface Format {
  /** The type that schemas of this format have in the registry. */
  readonly type: SchemaRegistry.SchemaType
  /** Makes the reader of the values that were written with this schema. Both fail by throwing. */
  readonly readerOf: (registered: SchemaRegistry.RegisteredSchema) => (body: Uint8Array) => unknown
  /** The id that values are written with. Undefined: they cannot be written. */
  readonly writerId: number | undefined
}

/** The functions of a serde in the wire format. */
export interface Framed {
  /** The value in the bytes of a record. Throws where the bytes, their schema, or the value is none. */
  readonly decode: (bytes: Uint8Array) => unknown
  /** Puts the header before the encoded value. Throws when values cannot be written. */
  readonly frame: (body: Uint8Array) => Uint8Array
  /** Fetches the schema of a record, as `prepare` of a serde does. */
  readonly prepare: NonNullable<Serde.Any["prepare"]>
}

/** Makes the functions of a serde, with a registry. */
export const make = (
  registry: SchemaRegistry.SchemaRegistry["Service"],
  { type, readerOf, writerId }: Format
): Framed => {
  const readers = new Map<number, (body: Uint8Array) => unknown>()
  const readerFor = (registered: SchemaRegistry.RegisteredSchema) =>
    Result.getOrElse(
      Result.try(() => {
        if (registered.type !== type) throw new Error(`it is ${registered.type}, not ${type}`)
        return readerOf(registered)
      }),
      // The reader of an unusable schema fails for each record.
      (thrown) => () => {
        throw new UnusableSchema({ schema: `schema ${registered.id}`, detail: messageOf(thrown) })
      }
    )
  return {
    decode: (bytes) => {
      const { id, body } = Frame.read(bytes)
      const reader = readers.get(id)
      if (reader !== undefined) return reader(body)
      throw registry.refusal(id) ?? new Error(`schema ${id} was not fetched (Serde.prepare)`)
    },
    frame: (body) => {
      if (writerId === undefined) throw new Error("a schema and its subject are needed for writing")
      return Frame.write(writerId, body)
    },
    prepare: (bytes) => {
      const id = Frame.idOf(bytes)
      if (id === undefined || readers.has(id)) return undefined
      return Effect.match(registry.byId(id), {
        onSuccess: (registered) => readers.set(id, readerFor(registered)),
        onFailure: () => {}
      })
    }
  }
}

/**
 * `serde` with the registry at `url`, or JSON when `url` is undefined (resilient consumer seed "Message Formats"). Fails as `serde` and `SchemaRegistry.make`
 * do.
 */
export const orJson = <A, I>(
  url: string | undefined,
  schema: Schema.Codec<A, I>,
  options: Omit<SchemaRegistry.Options, "url">,
  serde: Effect.Effect<Serde.Serde<A>, UnusableSchema, SchemaRegistry.SchemaRegistry>
): Effect.Effect<
  Serde.Serde<A>,
  UnusableSchema | EventBusError.ConfigurationValidation,
  HttpClient.HttpClient | Scope.Scope
> =>
  url === undefined
    ? Effect.succeed(Serde.json(schema))
    : Effect.provideServiceEffect(serde, SchemaRegistry.SchemaRegistry, SchemaRegistry.make({ ...options, url }))

/** The failure of a program's own schema that cannot be used. */
export const ownSchema = <A>(parse: () => A): Effect.Effect<A, UnusableSchema> =>
  Effect.try({
    try: parse,
    catch: (thrown) => new UnusableSchema({ schema: "the schema of the program", detail: messageOf(thrown) })
  })

const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown))
