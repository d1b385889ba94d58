/**
 * A schema registry with Confluent's REST interface, which Karapace, Redpanda and Apicurio (`/apis/ccompat/v7`) offer too.
 *
 * A schema is fetched once, because it never changes under its id; concurrent callers share the request. While the registry is unreachable, answers with an
 * error of its own or refuses the credentials, a request is repeated until it is interrupted, after 100 ms doubling up to 10 s. The log names each reason
 * once. Only an answer about the schema itself fails, with `UnusableSchema`.
 */
import { EventBusError, Kinds, Ranges } from "@eventbus/core"
import { Clock, Context, type Duration, Effect, Layer, RcMap, Redacted, Schema, type Scope } from "effect"
import { HttpClient } from "effect/http"
import * as Requests from "./internal/requests.ts"
import { UnusableSchema } from "./UnusableSchema.ts"

/** How to reach a schema registry. */
export interface Options {
  /**
   * `http://host:8081` or `https://...`. Several, separated by commas, are tried in turn. `http://user:password@host:8081` sets `username` and `password`.
   * Confluent: `schema.registry.url`.
   */
  readonly url: string
  /** User of HTTP Basic authentication. Default: the one in `url`, or else none. */
  readonly username?: string
  /** Password of that user. Default: the one in `url`, or else none. */
  readonly password?: Redacted.Redacted
  /** A bearer token. When it is set, user and password are not sent. Default none. */
  readonly token?: Redacted.Redacted
  /** Longest time for one attempt. Default 10 seconds. */
  readonly requestTimeout?: Duration.Input
}

/** A schema as the registry stores it. */
export interface RegisteredSchema {
  /** The id in the registry, 0 or more. */
  readonly id: number
  /** The Avro schema as JSON text. */
  readonly schema: string
  /** The schemas that it refers to, as JSON text. Each comes after the schemas that it refers to itself. */
  readonly references: ReadonlyArray<string>
}

/** A request for the id of a schema under a subject. */
export interface SchemaRequest {
  /** The subject, such as `orders-value`. */
  readonly subject: string
  /** The Avro schema as JSON text. */
  readonly schema: string
  /** `true` registers the schema when it is missing; `false` makes a missing schema an error. Confluent: `auto.register.schemas`. */
  readonly register: boolean
}

/** The registry that serdes get their schemas from. */
export class SchemaRegistry extends Context.Service<
  SchemaRegistry,
  {
    /** The schema of an id. Waits while the registry is unavailable. Fails when there is no such schema, or when it is not Avro. */
    readonly byId: (id: number) => Effect.Effect<RegisteredSchema, UnusableSchema>
    /** The failure of the last `byId` of this id; undefined when it did not fail. Sends no request. */
    readonly refusal: (id: number) => UnusableSchema | undefined
    /** The id of a schema under a subject. Waits while the registry is unavailable. Fails when the registry refuses the schema or does not have it. */
    readonly idOf: (request: SchemaRequest) => Effect.Effect<number, UnusableSchema>
  }
>()("@eventbus/avro/SchemaRegistry") {}

/** Makes the service, with the `HttpClient` of the context. Fails with `ConfigurationValidation` when `url` is none. Sends no request. */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<
  SchemaRegistry["Service"],
  EventBusError.ConfigurationValidation,
  HttpClient.HttpClient | Scope.Scope
> {
  const send = Requests.make(yield* HttpClient.HttpClient, yield* addressOf(options))
  const known = new Map<number, RegisteredSchema>()
  const refused = new Map<number, { readonly error: UnusableSchema; readonly untilMillis: number }>()
  const remember = Effect.fnUntraced(function* (id: number, error: UnusableSchema) {
    // Ids come with records, so a producer of made-up ids must not fill the memory.
    if (refused.size >= maxRefused) refused.clear()
    refused.set(id, { error, untilMillis: (yield* Clock.currentTimeMillis) + refusedMillis })
  })
  const inFlight = yield* RcMap.make({
    lookup: Effect.fnUntraced(function* (id: number) {
      const before = refused.get(id)
      if (before !== undefined && before.untilMillis > (yield* Clock.currentTimeMillis)) return yield* before.error
      const schema = yield* Effect.tapError(fetchSchema(send, id), (error) => remember(id, error))
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
        send({
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

/** `make` as a layer. */
export const layer = (
  options: Options
): Layer.Layer<SchemaRegistry, EventBusError.ConfigurationValidation, HttpClient.HttpClient> =>
  Layer.effect(SchemaRegistry, make(options))

/** How long a refusal is remembered. The schema may be registered later. */
const refusedMillis = 30_000
const maxRefused = 1_000

const Registered = Schema.Struct({ id: Schema.Int })

const Answer = Schema.Struct({
  schema: Schema.String,
  schemaType: Schema.optionalKey(Schema.String),
  references: Schema.optionalKey(
    Schema.NullOr(Schema.Array(Schema.Struct({ subject: Schema.String, version: Schema.Int })))
  )
})

const fetchSchema = Effect.fnUntraced(function* (send: Requests.SendRequest, id: number) {
  const schema = `schema ${id}`
  const answer = yield* send({ schema, path: `schemas/ids/${id}`, answer: Answer })
  const { schemaType = "AVRO" } = answer
  if (schemaType !== "AVRO") return yield* new UnusableSchema({ schema, detail: `it is ${schemaType}, not Avro` })
  const references: Array<string> = []
  yield* addReferences(send, answer, references, new Set())
  return { id, schema: answer.schema, references }
})

const addReferences = Effect.fnUntraced(function* (
  send: Requests.SendRequest,
  { references }: typeof Answer.Type,
  into: Array<string>,
  seen: Set<string>
): Effect.fn.Return<void, UnusableSchema> {
  for (const { subject, version } of references ?? []) {
    const path = `subjects/${encodeURIComponent(subject)}/versions/${version}`
    if (seen.has(path)) continue
    seen.add(path)
    const referred = yield* send({ schema: `version ${version} of subject ${subject}`, path, answer: Answer })
    yield* addReferences(send, referred, into, seen)
    into.push(referred.schema)
  }
})

const urlsOf = (text: string) => text.split(",").map((each) => URL.parse(each.trim()))

/** The text may hold a password. */
const url: Kinds.Kind = (path, found) =>
  typeof found === "string" && urlsOf(found).every((each) => each !== null && /^https?:$/.test(each.protocol))
    ? []
    : [{ path, found: "(not shown)", allowed: "http://host:port or https://host:port, several with commas" }]

const kinds = Kinds.section(
  {
    ...{ username: Kinds.string, password: Kinds.redacted, token: Kinds.redacted },
    requestTimeout: Ranges.clients.requestTimeout
  },
  { url }
)

const addressOf = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Requests.Address, EventBusError.ConfigurationValidation> {
  const issues = kinds("SchemaRegistry", options).map((issue) => ({
    ...issue,
    path: issue.path.replace(/^SchemaRegistry\./, "")
  }))
  if (issues.length > 0) return yield* new EventBusError.ConfigurationValidation({ issues })
  const urls = urlsOf(options.url)
  const inUrl = urls.find((url) => url?.username)
  return {
    urls: urls.map((url) => `${url?.origin}${url?.pathname.replace(/\/+$/, "")}`),
    username: options.username ?? (inUrl ? decodeURIComponent(inUrl.username) : undefined),
    password: options.password ?? (inUrl ? Redacted.make(decodeURIComponent(inUrl.password)) : undefined),
    token: options.token,
    requestTimeout: options.requestTimeout ?? "10 seconds"
  }
})
