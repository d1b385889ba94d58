/** Requests to a schema registry. Each is repeated during an outage, until the registry has answered. */
import { LogLine } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { UnusableSchema } from "../UnusableSchema.ts"

/** Where the registry is, and how to authenticate. */
export interface Address {
  /** Base URLs without credentials. A failed request is repeated at the next one. */
  readonly urls: ReadonlyArray<string>
  readonly username: string | undefined
  readonly password: Redacted.Redacted | undefined
  readonly token: Redacted.Redacted | undefined
  readonly requestTimeout: Duration.Input
}

/** One request. */
export interface RegistryRequest<A> {
  /** Names the requested schema in messages. */
  readonly schema: string
  /** Path below the base URL. */
  readonly path: string
  /** Sent by POST, as JSON. Default: none, sent by GET. */
  readonly body?: object
  /** Decodes the answer. */
  readonly answer: Schema.Codec<A, unknown>
  /** The answer where there is no such subject or version. Default: none, a failure. */
  readonly whenMissing?: NoInfer<A>
}

export type SendRequest = <A>(request: RegistryRequest<A>) => Effect.Effect<A, UnusableSchema>

/** The registry has not answered, or its answer says nothing about the schema. */
class RegistryUnavailable extends Data.TaggedError("RegistryUnavailable")<{ readonly message: string }> {}

/** Backoff between attempts: 100 ms doubling up to 10 s. */
const retryBackoff = Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("10 seconds")])

export const make = (client: HttpClient.HttpClient, address: Address): SendRequest => {
  let url = 0
  const attempt = <A>(request: RegistryRequest<A>) =>
    Effect.suspend(() => client.execute(requestOf(request, address, address.urls[url]!))).pipe(
      Effect.flatMap((response) => Effect.map(response.text, (text) => ({ status: response.status, text }))),
      Effect.timeout(address.requestTimeout),
      Effect.catch((error) => Effect.fail(new RegistryUnavailable({ message: describe(error) }))),
      Effect.flatMap((response) => read(request, response)),
      Effect.tapError(({ _tag }) =>
        Effect.sync(() => {
          if (_tag === "RegistryUnavailable") url = (url + 1) % address.urls.length
        })
      )
    )
  return (request) =>
    Effect.suspend(() => {
      let lastLogged: string | undefined
      const logOnce = (error: RegistryUnavailable | UnusableSchema) => {
        if (error._tag !== "RegistryUnavailable" || error.message === lastLogged) return Effect.void
        lastLogged = error.message
        return LogLine.warning(
          `The schema registry does not return ${request.schema}; the request is repeated: ${lastLogged}`
        )
      }
      return attempt(request).pipe(
        Effect.tapError(logOnce),
        Effect.retry({ schedule: retryBackoff, while: ({ _tag }) => _tag === "RegistryUnavailable" }),
        Effect.catchTag("RegistryUnavailable", Effect.die),
        Effect.tap(() => (lastLogged === undefined ? Effect.void : LogLine.info("The schema registry answers again")))
      )
    })
}

const mediaType = "application/vnd.schemaregistry.v1+json"

const requestOf = ({ path, body }: RegistryRequest<unknown>, { username, password, token }: Address, base: string) => {
  const url = `${base}/${path}`
  let request =
    body === undefined
      ? HttpClientRequest.get(url)
      : HttpClientRequest.bodyText(HttpClientRequest.post(url), JSON.stringify(body), mediaType)
  request = HttpClientRequest.accept(request, `${mediaType}, application/json`)
  if (token !== undefined) return HttpClientRequest.bearerToken(request, token)
  return username === undefined ? request : HttpClientRequest.basicAuth(request, username, password ?? "")
}

/** Error codes for: subject, version or schema not found. A plain 404, as a proxy sends it, says nothing about the schema. */
const notFound = new Set<unknown>([40401, 40402, 40403])

const Failed = Schema.Struct({ error_code: Schema.Int, message: Schema.optionalKey(Schema.String) })

const read = <A>(
  { schema, answer, whenMissing }: RegistryRequest<A>,
  { status, text }: { readonly status: number; readonly text: string }
): Effect.Effect<A, RegistryUnavailable | UnusableSchema> => {
  if (status === 200) {
    return Effect.mapError(
      Schema.decodeEffect(Schema.fromJsonString(answer))(text),
      () => new RegistryUnavailable({ message: "its answer is not that of a schema registry" })
    )
  }
  const failed = Schema.decodeUnknownOption(Schema.fromJsonString(Failed))(text)
  const { error_code: code, message = "" } = failed._tag === "Some" ? failed.value : { error_code: undefined }
  if (status === 404 && whenMissing !== undefined && notFound.has(code)) return Effect.succeed(whenMissing)
  const isFinal = status === 409 || status === 422 || (status === 404 && notFound.has(code))
  const detail = `status ${status}${code === undefined ? "" : `, code ${code}`}${message === "" ? "" : `: ${message}`}`
  return Effect.fail(
    isFinal
      ? new UnusableSchema({ schema, detail: `the schema registry answers with ${detail}` })
      : new RegistryUnavailable({ message: `it answers with ${detail}` })
  )
}

/** The message with those of its causes, which say more than "transport error". */
const describe = (error: Error, depth = 0): string => {
  if (Cause.isTimeoutError(error)) return "it does not answer in time"
  const { cause } = error
  return cause instanceof Error && depth < 3 ? `${error.message}: ${describe(cause, depth + 1)}` : error.message
}
