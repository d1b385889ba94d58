/**
 * A schema registry with Confluent's REST interface, which Karapace, Redpanda and Apicurio (`/apis/ccompat/v7`) offer too.
 *
 * A schema is fetched once, because it never changes under its id; concurrent callers share the request. While the registry is unreachable, answers with an
 * error of its own or refuses the credentials, a request is repeated until it is interrupted, after 100 ms doubling up to 10 s. The log names each reason
 * once. Only an answer about the schema itself fails, with `UnusableSchema`.
 */
import { EventBusError, Kinds, Ranges } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as RcMap from "effect/RcMap"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
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

/** A type of schemas in the registry. */
export type SchemaType = "AVRO" | "JSON" | "PROTOBUF"

/** A schema that another one refers to. */
export interface ReferredSchema {
  /** The name that refers to it: an Avro name, a `$ref`, or the path of an `import`. */
  readonly name: string
  /** The schema as text. */
  readonly schema: string
}

/** A schema as the registry stores it. */
export interface RegisteredSchema {
  /** The id in the registry, 0 or more. */
  readonly id: number
  /** The type of the schema: a `SchemaType`, or another one that the registry knows. */
  readonly type: string
  /** The schema as text: JSON, or a `.proto` file. */
  readonly schema: string
  /** The schemas that it refers to. Each comes after the schemas that it refers to itself. */
  readonly references: ReadonlyArray<ReferredSchema>
}

/** Names a registered schema that a schema to be registered refers to. */
export interface Reference {
  /** The name that the schema refers to it by: an Avro name, a `$ref`, or the path of an `import`. */
  readonly name: string
  /** The subject that it is registered under. */
  readonly subject: string
  /** Its version in that subject, 1 or more. */
  readonly version: number
}

/** A schema under a subject. */
export interface SubjectSchema {
  /** The subject, such as `orders-value`. */
  readonly subject: string
  /** The schema as text. */
  readonly schema: string
  /** The type of the schema. Default `"AVRO"`. */
  readonly type?: SchemaType
  /** The registered schemas that it refers to. Default none. */
  readonly references?: ReadonlyArray<Reference>
}

/** A request for the id or the version of a schema under a subject. */
export interface SchemaRequest extends SubjectSchema {
  /** `true` registers the schema when it is missing; `false` makes a missing schema an error. Default `false`. Confluent: `auto.register.schemas`. */
  readonly register?: boolean
  /** Asks first whether the schema is compatible with the latest one of the subject, and fails when it is not. Default `false`. */
  readonly checkCompatibility?: boolean
}

/** The registry that serdes get their schemas from. */
export class SchemaRegistry extends Context.Service<
  SchemaRegistry,
  {
    /** The schema of an id. Waits while the registry is unavailable. Fails when there is no such schema. */
    readonly byId: (id: number) => Effect.Effect<RegisteredSchema, UnusableSchema>
    /** The failure of the last `byId` of this id; undefined when it did not fail. Sends no request. */
    readonly refusal: (id: number) => UnusableSchema | undefined
    /** The id of a schema under a subject. Waits while the registry is unavailable. Fails when the registry refuses the schema or does not have it. */
    readonly idOf: (request: SchemaRequest) => Effect.Effect<number, UnusableSchema>
    /** The version of a schema in its subject, for a `Reference`. Waits and fails as `idOf` does. */
    readonly versionOf: (request: SchemaRequest) => Effect.Effect<number, UnusableSchema>
    /**
     * The reasons why a schema is not compatible with the latest one of its subject, by the rule of the subject. Empty when it is compatible, or when the subject has no schema. Waits while the
     * registry is unavailable. Fails when it refuses the schema as such.
     */
    readonly incompatibilities: (schema: SubjectSchema) => Effect.Effect<ReadonlyArray<string>, UnusableSchema>
  }
>()("@eventbus/schema-registry/SchemaRegistry") {}

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
    idOf: (request) => Effect.map(find(send, request, Registered), ({ id }) => id),
    // A registration answers with the id alone.
    versionOf: Effect.fnUntraced(function* (request) {
      if (request.register) yield* find(send, request, Registered)
      const { version } = yield* find(send, { ...request, register: false, checkCompatibility: false }, Found)
      return version
    }),
    incompatibilities: (schema) => incompatibilities(send, schema)
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
const Found = Schema.Struct({ version: Schema.Int })

const find = Effect.fnUntraced(function* <A>(
  send: Requests.SendRequest,
  { register = false, checkCompatibility = false, ...schema }: SchemaRequest,
  answer: Schema.Codec<A, unknown>
) {
  const name = nameOf(schema)
  if (checkCompatibility) {
    const problems = yield* incompatibilities(send, schema)
    if (problems.length > 0) {
      const detail = `it is not compatible with the latest version of the subject: ${problems.join("; ")}`
      return yield* new UnusableSchema({ schema: name, detail })
    }
  }
  const path = `subjects/${encodeURIComponent(schema.subject)}`
  return yield* send({ schema: name, path: register ? `${path}/versions` : path, body: bodyOf(schema), answer })
})

const Compatibility = Schema.Struct({
  is_compatible: Schema.Boolean,
  messages: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String)))
})

const incompatibilities = (send: Requests.SendRequest, schema: SubjectSchema) =>
  Effect.map(
    send({
      schema: nameOf(schema),
      path: `compatibility/subjects/${encodeURIComponent(schema.subject)}/versions/latest?verbose=true`,
      body: bodyOf(schema),
      answer: Compatibility,
      whenMissing: { is_compatible: true }
    }),
    ({ is_compatible, messages }) => {
      if (is_compatible) return []
      return messages?.length ? messages : ["the schema registry gives no reason"]
    }
  )

const nameOf = ({ subject }: SubjectSchema) => `the schema of subject ${subject}`

/** Registries that know Avro alone do not know the other keys. */
const bodyOf = ({ schema, type = "AVRO", references = [] }: SubjectSchema) => ({
  schema,
  ...(type !== "AVRO" && { schemaType: type }),
  ...(references.length > 0 && { references })
})

const Answer = Schema.Struct({
  schema: Schema.String,
  schemaType: Schema.optionalKey(Schema.String),
  references: Schema.optionalKey(
    Schema.NullOr(Schema.Array(Schema.Struct({ name: Schema.String, subject: Schema.String, version: Schema.Int })))
  )
})

const fetchSchema = Effect.fnUntraced(function* (send: Requests.SendRequest, id: number) {
  const schema = `schema ${id}`
  const answer = yield* send({ schema, path: `schemas/ids/${id}`, answer: Answer })
  const { schemaType: type = "AVRO" } = answer
  const references: Array<ReferredSchema> = []
  yield* addReferences(send, answer, references, new Set())
  return { id, type, schema: answer.schema, references }
})

const addReferences = Effect.fnUntraced(function* (
  send: Requests.SendRequest,
  { references }: typeof Answer.Type,
  into: Array<ReferredSchema>,
  seen: Set<string>
): Effect.fn.Return<void, UnusableSchema> {
  for (const { name, subject, version } of references ?? []) {
    const path = `subjects/${encodeURIComponent(subject)}/versions/${version}`
    const key = `${name} ${path}`
    if (seen.has(key)) continue
    seen.add(key)
    const referred = yield* send({ schema: `version ${version} of subject ${subject}`, path, answer: Answer })
    yield* addReferences(send, referred, into, seen)
    into.push({ name, schema: referred.schema })
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
