/**
 * A schema registry with the REST interface of Confluent's, as Karapace, Redpanda and Apicurio (`/apis/ccompat/v7`) have it, too.
 *
 * A schema is fetched once: it never changes under its id. Who needs it at the same time shares the request. While the registry cannot be reached, answers with
 * an error of its own or refuses the credentials, a request is repeated, 100 ms doubling up to 10 s apart, until it is interrupted; the log says so once for
 * each reason. Only an answer about the schema itself ends in `UnusableSchema`.
 */
import { EventBusError } from "@eventbus/core"
import { Clock, Context, type Duration, Effect, Layer, RcMap, Redacted, Schema, type Scope } from "effect"
import { HttpClient } from "effect/http"
import * as Requests from "./internal/requests.ts"
import { UnusableSchema } from "./UnusableSchema.ts"

export interface Options {
  /** `http://host:8081`; several with commas are tried in turn. `http://user:password@host:8081` is the same as `username` and `password`. */
  readonly url: string
  readonly username?: string
  readonly password?: Redacted.Redacted
  /** A bearer token, in the place of user and password. */
  readonly token?: Redacted.Redacted
  /** For one attempt. Default 10 seconds. */
  readonly requestTimeout?: Duration.Input
}

export interface RegisteredSchema {
  readonly id: number
  /** An Avro schema as JSON text. */
  readonly schema: string
  /** The schemas that it refers to, each behind those that it refers to itself. */
  readonly references: ReadonlyArray<string>
}

export interface SchemaRequest {
  readonly subject: string
  /** An Avro schema as JSON text. */
  readonly schema: string
  /** Registers it where it is missing; else that is an error. */
  readonly register: boolean
}

export class SchemaRegistry extends Context.Service<
  SchemaRegistry,
  {
    readonly byId: (id: number) => Effect.Effect<RegisteredSchema, UnusableSchema>
    /** With what the last `byId` of this id failed, if it did. Asks nobody. */
    readonly refusal: (id: number) => UnusableSchema | undefined
    /** The id that a schema has under a subject. */
    readonly idOf: (wanted: SchemaRequest) => Effect.Effect<number, UnusableSchema>
  }
>()("@eventbus/avro/SchemaRegistry") {}

export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<
  SchemaRegistry["Service"],
  EventBusError.ConfigurationValidation,
  HttpClient.HttpClient | Scope.Scope
> {
  const ask = Requests.make(yield* HttpClient.HttpClient, yield* addressOf(options))
  const known = new Map<number, RegisteredSchema>()
  const refused = new Map<number, { readonly error: UnusableSchema; readonly untilMillis: number }>()
  const remember = Effect.fnUntraced(function* (id: number, error: UnusableSchema) {
    // Ids come with records: whoever makes them up must not fill the memory.
    if (refused.size >= mostRefused) refused.clear()
    refused.set(id, { error, untilMillis: (yield* Clock.currentTimeMillis) + refusedMillis })
  })
  const inFlight = yield* RcMap.make({
    lookup: Effect.fnUntraced(function* (id: number) {
      const before = refused.get(id)
      if (before !== undefined && before.untilMillis > (yield* Clock.currentTimeMillis)) return yield* before.error
      const schema = yield* Effect.tapError(fetch(ask, id), (error) => remember(id, error))
      known.set(id, schema)
      refused.delete(id)
      return schema
    })
  })
  return SchemaRegistry.of({
    byId: (id) =>
      Effect.suspend(() => {
        const schema = known.get(id)
        return schema === undefined ? Effect.scoped(RcMap.get(inFlight, id)) : Effect.succeed(schema)
      }),
    refusal: (id) => refused.get(id)?.error,
    idOf: ({ subject, schema, register }) => {
      const path = `subjects/${encodeURIComponent(subject)}`
      return Effect.map(
        ask({
          schema: `the schema of subject ${subject}`,
          path: register ? `${path}/versions` : path,
          body: { schema },
          answer: Registered
        }),
        ({ id }) => id
      )
    }
  })
})

export const layer = (
  options: Options
): Layer.Layer<SchemaRegistry, EventBusError.ConfigurationValidation, HttpClient.HttpClient> =>
  Layer.effect(SchemaRegistry, make(options))

/** So long "there is no such schema" holds: it may be registered yet. */
const refusedMillis = 30_000
const mostRefused = 1_000

const Registered = Schema.Struct({ id: Schema.Int })

const Answer = Schema.Struct({
  schema: Schema.String,
  schemaType: Schema.optionalKey(Schema.String),
  references: Schema.optionalKey(
    Schema.NullOr(Schema.Array(Schema.Struct({ subject: Schema.String, version: Schema.Int })))
  )
})

const fetch = Effect.fnUntraced(function* (ask: Requests.SendRequest, id: number) {
  const schema = `schema ${id}`
  const answer = yield* ask({ schema, path: `schemas/ids/${id}`, answer: Answer })
  const { schemaType = "AVRO" } = answer
  if (schemaType !== "AVRO") return yield* new UnusableSchema({ schema, detail: `it is ${schemaType}, not Avro` })
  const references: Array<string> = []
  yield* addReferences(ask, answer, references, new Set())
  return { id, schema: answer.schema, references }
})

const addReferences = Effect.fnUntraced(function* (
  ask: Requests.SendRequest,
  { references }: typeof Answer.Type,
  into: Array<string>,
  seen: Set<string>
): Effect.fn.Return<void, UnusableSchema> {
  for (const { subject, version } of references ?? []) {
    const path = `subjects/${encodeURIComponent(subject)}/versions/${version}`
    if (seen.has(path)) continue
    seen.add(path)
    const referred = yield* ask({ schema: `version ${version} of subject ${subject}`, path, answer: Answer })
    yield* addReferences(ask, referred, into, seen)
    into.push(referred.schema)
  }
})

const addressOf = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Requests.Address, EventBusError.ConfigurationValidation> {
  const urls = options.url.split(",").map((text) => URL.parse(text.trim()))
  if (!urls.every((url) => url !== null && /^https?:$/.test(url.protocol))) {
    // It may hold a password.
    const issue = {
      path: "url",
      found: "(not shown)",
      allowed: "http://host:port or https://host:port, several with commas"
    }
    return yield* new EventBusError.ConfigurationValidation({ issues: [issue] })
  }
  const inUrl = urls.find((url) => url?.username)
  return {
    urls: urls.map((url) => `${url?.origin}${url?.pathname.replace(/\/+$/, "")}`),
    username: options.username ?? (inUrl ? decodeURIComponent(inUrl.username) : undefined),
    password: options.password ?? (inUrl ? Redacted.make(decodeURIComponent(inUrl.password)) : undefined),
    token: options.token,
    requestTimeout: options.requestTimeout ?? "10 seconds"
  }
})
