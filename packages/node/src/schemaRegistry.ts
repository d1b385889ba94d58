/**
 * Serdes of a schema registry for programs without Effect. It needs the package `@eventbus/schema-registry`, and one for each format: `@eventbus/avro`, `@eventbus/json-schema`,
 * `@eventbus/protobuf`.
 *
 * ```ts
 * import { JsonSchema } from "@eventbus/json-schema"
 * import { consumer } from "@eventbus/node"
 * import { anyValue, schemaRegistry } from "@eventbus/node/schemaRegistry"
 * import { z } from "zod"
 *
 * const Order = z.object({ id: z.string(), cents: z.int() })
 * const registry = await schemaRegistry({ url: "https://registry:8081", username: "billing", password: "..." })
 *
 * export const orders = consumer({
 *   topic: "orders",
 *   groupId: "billing",
 *   value: await registry.serde(JsonSchema.serde(anyValue), Order),
 *   handler: async ({ value }) => console.log(value.id, value.cents)
 * })
 * ```
 */
import { Serde } from "@eventbus/core"
import { SchemaRegistry, type UnusableSchema } from "@eventbus/schema-registry"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as StandardCheck from "./internal/standardCheck.ts"
import type { DurationValue } from "./PlainValues.ts"

/** How to reach a schema registry. */
export interface SchemaRegistryOptions {
  /** `http://host:8081` or `https://...`. Several, separated by commas, are tried in turn. */
  readonly url: string
  /** User of HTTP Basic authentication. Default: none. */
  readonly username?: string
  /** Password of that user. Default: none. */
  readonly password?: string
  /** A bearer token. When it is set, user and password are not sent. Default: none. */
  readonly token?: string
  /** Longest time for one attempt. Default 10 seconds. */
  readonly requestTimeout?: DurationValue
}

/** A serde that needs a registry: what `Avro.serde`, `JsonSchema.serde` and `Protobuf.serde` answer with. */
export type Format<A> = Effect.Effect<Serde.Serde<A>, UnusableSchema.UnusableSchema, SchemaRegistry.SchemaRegistry>

/** The client of a schema registry. All serdes of it share its cache. */
export interface SchemaRegistryClient {
  /**
   * The serde of a format, such as `registry.serde(Protobuf.serde(OrderSchema))`. With a schema of the Standard Schema, that schema checks each value that is read or written. Rejects with
   * `UnusableSchema` when the registry does not have the schema that values are written with; while the registry is away, it waits and logs the reason. A serde that only reads asks the
   * registry at its first record.
   */
  readonly serde: {
    <A>(format: Format<A>): Promise<Serde.Serde<A>>
    <I, A>(format: Format<unknown>, schema: StandardSchemaV1<I, A>): Promise<Serde.Serde<A>>
  }
}

/** Values of any kind: the format alone says what they are, and a schema beside it checks them. */
export const anyValue: Schema.Codec<unknown> = Schema.Unknown

/** The client of the registry at `url`. Sends no request. Rejects with `ConfigurationValidation` when an option is none. */
export const schemaRegistry = async (options: SchemaRegistryOptions): Promise<SchemaRegistryClient> => {
  const { password, token, ...plain } = options
  // The scope holds nothing but requests on their way, which end with the records that wait for them.
  const registry = await Effect.runPromise(
    SchemaRegistry.make({
      ...plain,
      ...(password !== undefined && { password: Redacted.make(password) }),
      ...(token !== undefined && { token: Redacted.make(token) })
    } as SchemaRegistry.Options).pipe(
      Effect.provide(FetchHttpClient.layer),
      Effect.provideService(Scope.Scope, Scope.makeUnsafe())
    )
  )
  return {
    serde: async <A>(format: Format<A>, schema?: StandardSchemaV1<unknown, A>) => {
      const serde = await Effect.runPromise(Effect.provideService(format, SchemaRegistry.SchemaRegistry, registry))
      return schema === undefined ? serde : checked(serde, schema)
    }
  }
}

const checked = <A>(serde: Serde.Serde<A>, schema: StandardSchemaV1<unknown, A>): Serde.Serde<A> => {
  const name = `${serde.name}(${schema["~standard"].vendor})`
  const check = StandardCheck.make(schema)
  return {
    ...serde,
    name,
    decode: (bytes, source) =>
      Result.flatMap(serde.decode(bytes, source), (value) =>
        Result.try({
          try: () => check(value),
          catch: (thrown) => StandardCheck.failure(Serde.DecodeFailure, name, thrown)
        })
      ),
    encode: (value) =>
      Result.flatMap(
        Result.try({
          try: () => check(value),
          catch: (thrown) => StandardCheck.failure(Serde.EncodeFailure, name, thrown)
        }),
        () => serde.encode(value)
      )
  }
}
