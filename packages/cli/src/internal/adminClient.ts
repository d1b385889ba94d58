/**
 * The admin API of a running process, as a typed client. `EVENTBUS_TOKEN` is the credential: a flag would show in the list of processes.
 */
import * as AdminApi from "@eventbus/admin/AdminApi"
import { Config, Data, Effect, Option, Predicate, Redacted } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import type { Failed } from "./dlt/operator.ts"
import { refuseUsage } from "./failures.ts"

export type Client = HttpApiClient.ForApi<AdminApi.AdminApi>

/** The process cannot be reached, or answers what no admin API answers. */
class NoAnswer extends Data.TaggedError("NoAnswer")<{ readonly message: string }> {}

const token = Config.option(Config.Redacted("EVENTBUS_TOKEN"))

/** The client, and how its answers are asked for: a failure of the way there names the address. */
export const apiOf = Effect.fnUntraced(function* (address: string) {
  const url = yield* read(address)
  const path = url.pathname.replace(/\/+$/, "")
  const credential = yield* Effect.orDie(token)
  const client: Client = yield* HttpApiClient.make(AdminApi.make(path === "" ? "/eventbus" : (path as `/${string}`)), {
    baseUrl: url.origin,
    transformClient: HttpClient.mapRequest((request) =>
      Option.match(credential, {
        // A change without a token has to say that no browser was tricked into it.
        onNone: () => HttpClientRequest.setHeader(request, "x-eventbus-csrf", "1"),
        onSome: (secret) => HttpClientRequest.bearerToken(request, Redacted.value(secret))
      })
    )
  }).pipe(Effect.provide(FetchHttpClient.layer))
  const asked = <A, E>(asking: Effect.Effect<A, E>): Effect.Effect<A, Failed> =>
    Effect.mapError(asking, (error) => (isAnswer(error) ? error : noAnswer(address, error)))
  return { client, asked }
})

const read = (address: string) => {
  const url = URL.canParse(address) ? new URL(address) : undefined
  return url !== undefined && (url.protocol === "http:" || url.protocol === "https:") && url.username === ""
    ? Effect.succeed(url)
    : refuseUsage(
        `--url is "${url === undefined ? address : url.origin}"; allowed is http://host:port, and the path of the API where that is not /eventbus`
      )
}

/** An error that the process has answered. */
const isAnswer = (error: unknown): error is Failed =>
  Predicate.hasProperty(error, "_tag") &&
  Predicate.hasProperty(error, "message") &&
  error._tag !== "HttpClientError" &&
  error._tag !== "SchemaError"

const noAnswer = (address: string, error: unknown): Failed => {
  const detail = Predicate.hasProperty(error, "message") ? String(error.message) : String(error)
  return new NoAnswer({ message: `${address} gives no answer of the admin API: ${detail}` })
}
