/**
 * Requests to a schema registry that wait out an outage: each is repeated until the registry has answered, whatever it says.
 */
import { Cause, Data, type Duration, Effect, type Redacted, Schedule, Schema } from "effect"
import { type HttpClient, HttpClientRequest } from "effect/http"
import { UnusableSchema } from "../UnusableSchema.ts"

export interface Address {
  /** Base URLs without credentials; a request that fails goes to the next one. */
  readonly urls: ReadonlyArray<string>
  readonly username: string | undefined
  readonly password: Redacted.Redacted | undefined
  readonly token: Redacted.Redacted | undefined
  readonly requestTimeout: Duration.Input
}

/** What is asked: for messages, and as a request. */
export interface RegistryRequest<A> {
  readonly schema: string
  readonly path: string
  /** Sent with POST, as JSON. */
  readonly body?: object
  readonly answer: Schema.Codec<A, unknown>
}

export type SendRequest = <A>(question: RegistryRequest<A>) => Effect.Effect<A, UnusableSchema>

/** The registry has not answered, or nothing that says anything about the schema: it may tomorrow. */
class RegistryUnavailable extends Data.TaggedError("NoAnswer")<{ readonly message: string }> {}

/** Waits between attempts: 100 ms doubling up to 10 s. */
const outage = Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("10 seconds")])

export const make = (client: HttpClient.HttpClient, address: Address): SendRequest => {
  let url = 0
  const attempt = <A>(question: RegistryRequest<A>) =>
    Effect.suspend(() => client.execute(requestOf(question, address, address.urls[url]!))).pipe(
      Effect.flatMap((response) => Effect.map(response.text, (text) => ({ status: response.status, text }))),
      Effect.timeout(address.requestTimeout),
      Effect.catch((error) => Effect.fail(new RegistryUnavailable({ message: describe(error) }))),
      Effect.flatMap((response) => read(question, response)),
      Effect.tapError(({ _tag }) =>
        Effect.sync(() => {
          if (_tag === "NoAnswer") url = (url + 1) % address.urls.length
        })
      )
    )
  return (question) =>
    Effect.suspend(() => {
      let said: string | undefined
      const say = (error: RegistryUnavailable | UnusableSchema) => {
        if (error._tag !== "NoAnswer" || error.message === said) return Effect.void
        said = error.message
        return Effect.logWarning(`The schema registry is asked for ${question.schema} until it answers: ${said}`)
      }
      return attempt(question).pipe(
        Effect.tapError(say),
        Effect.retry({ schedule: outage, while: ({ _tag }) => _tag === "NoAnswer" }),
        Effect.catchTag("NoAnswer", Effect.die),
        Effect.tap(() => (said === undefined ? Effect.void : Effect.logInfo("The schema registry answers again")))
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

/** What a registry says for good about a schema: subject, version or schema not found; a proxy's plain 404 says nothing. */
const notFound = new Set<unknown>([40401, 40402, 40403])

const Failed = Schema.Struct({ error_code: Schema.Int, message: Schema.optionalKey(Schema.String) })

const read = <A>(
  { schema, answer }: RegistryRequest<A>,
  { status, text }: { readonly status: number; readonly text: string }
): Effect.Effect<A, RegistryUnavailable | UnusableSchema> => {
  if (status === 200) {
    return Effect.mapError(
      Schema.decodeEffect(Schema.fromJsonString(answer))(text),
      () => new RegistryUnavailable({ message: "its answer is none of a schema registry" })
    )
  }
  const failed = Schema.decodeUnknownOption(Schema.fromJsonString(Failed))(text)
  const { error_code: code, message = "" } = failed._tag === "Some" ? failed.value : { error_code: undefined }
  const isFinal = status === 409 || status === 422 || (status === 404 && notFound.has(code))
  const detail = `status ${status}${code === undefined ? "" : `, code ${code}`}${message === "" ? "" : `: ${message}`}`
  return Effect.fail(
    isFinal
      ? new UnusableSchema({ schema, detail: `the schema registry answers with ${detail}` })
      : new RegistryUnavailable({ message: `it answers with ${detail}` })
  )
}

/** With its causes, which say more than "transport error". */
const describe = (error: Error, depth = 0): string => {
  if (Cause.isTimeoutError(error)) return "it does not answer in time"
  const { cause } = error
  return cause instanceof Error && depth < 3 ? `${error.message}: ${describe(cause, depth + 1)}` : error.message
}
