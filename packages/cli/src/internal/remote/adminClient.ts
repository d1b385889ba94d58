/**
 * The admin API of a running process, as a typed client. `EVENTBUS_TOKEN` is the credential: a flag would show in the list of processes.
 */
import * as AdminApi from "@eventbus/admin/AdminApi"
import * as Config from "effect/Config"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { Failed } from "../dlt/operator.ts"
import { CommandFailed, exitCodes, refuseUsage } from "../failures.ts"
import { adminFetch, reasonOf } from "./adminFetch.ts"
import { doneOnce } from "./doneOnce.ts"
import { refusedFlag } from "./refusedFlag.ts"

export type Client = HttpApiClient.ForApi<AdminApi.AdminApi>

/** The process cannot be reached, or answers what no admin API answers. */
class NoAnswer extends Data.TaggedError("NoAnswer")<{ readonly message: string }> {}

/** The process says nothing at all. It is no answer of the process, although it has a message. */
class Silent extends Data.TaggedError("Silent")<{ readonly message: string; readonly cause?: unknown }> {}

const token = Config.option(Config.Redacted("EVENTBUS_TOKEN"))

/** The credential without the line break of a file. `fetch` would refuse other such characters with an error that shows the credential. */
const credentialOf = Effect.gen(function* () {
  const given = Option.map(yield* Effect.orDie(token), (secret) => Redacted.value(secret).trim())
  if (Option.exists(given, (text) => !/^[\x20-\x7e]*$/.test(text)))
    return yield* refuseUsage("EVENTBUS_TOKEN has a character that no credential has, such as a line break")
  return Option.map(
    Option.filter(given, (text) => text !== ""),
    (text) => Redacted.make(text)
  )
})

/** The client, and how its answers are asked for: a failure of the way there names the address. */
export const apiOf = Effect.fnUntraced(function* (address: string) {
  const { origin, prefix } = yield* read(address)
  const credential = yield* credentialOf
  const client: Client = yield* HttpApiClient.make(AdminApi.make(prefix), {
    baseUrl: origin,
    transformClient: (http) => doneOnce(HttpClient.mapRequest(http, signed(credential)))
  }).pipe(Effect.provide(FetchHttpClient.layer))
  const asked = <A, E>(asking: Effect.Effect<A, E>): Effect.Effect<A, Failed> =>
    Effect.suspend(() => {
      let isSent = false
      const sending: typeof fetch = (...request) => {
        isSent = true
        return adminFetch(...request)
      }
      return Effect.raceFirst(asking, whenSilent(`${origin}${prefix}/health`)).pipe(
        Effect.provideService(FetchHttpClient.Fetch, sending),
        Effect.catch((error) => {
          if (!isSent && Schema.isSchemaError(error)) return refuseUsage(refusedFlag(error.issue))
          return isAnswer(error)
            ? Effect.fail(ofCredential(error, Option.isSome(credential)))
            : Effect.flatMap(failedOf(address, error), Effect.fail)
        })
      )
    })
  return { client, asked }
})

const signed =
  (credential: Option.Option<Redacted.Redacted<string>>) => (bare: HttpClientRequest.HttpClientRequest) => {
    // The audit log tells the command line from other callers.
    const request = HttpClientRequest.setHeader(bare, "x-eventbus-client", "command-line")
    return Option.match(credential, {
      // A change without a token has to say that no browser was tricked into it.
      onNone: () => HttpClientRequest.setHeader(request, "x-eventbus-csrf", "1"),
      onSome: (secret) => HttpClientRequest.bearerToken(request, Redacted.value(secret))
    })
  }

/** How long a process may be silent, twice. */
const silenceTimeout = "10 seconds"

/** Fails once a process says nothing at all. A command on many dead letters may take minutes: while it does, the process answers this simple question, if only that it needs a credential. */
const whenSilent = (health: string): Effect.Effect<never, Silent> => {
  const question = Effect.tryPromise({
    try: async (signal) => void (await fetch(health, { signal, redirect: "manual" })).body?.cancel(),
    catch: (cause) => new Silent({ message: "no answer", cause })
  })
  const orSilent = Effect.timeoutOrElse(question, {
    duration: silenceTimeout,
    orElse: () => Effect.fail(new Silent({ message: "it is silent for 20 seconds" }))
  })
  return Effect.forever(Effect.andThen(Effect.sleep(silenceTimeout), orSilent))
}

/** The parts of `--url`. */
export const read = Effect.fnUntraced(function* (address: string) {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username + url.password !== "")
    return yield* refuseUsage(
      `--url is "${url === undefined ? address : url.origin}"; allowed is http://host:port, and the path of the API where that is not /eventbus`
    )
  const path = url.pathname.replace(/\/+$/, "")
  return { origin: url.origin, prefix: path === "" ? "/eventbus" : (path as `/${string}`) } as const
})

/** The refusal of a credential names the variable that has it. */
const ofCredential = (error: Failed, isGiven: boolean): Failed =>
  error._tag === "Unauthorized"
    ? { _tag: error._tag, message: `${error.message} EVENTBUS_TOKEN ${isGiven ? "has another one" : "is not set"}.` }
    : error

/** An error that the process has answered. */
const isAnswer = (error: unknown): error is Failed =>
  isFailed(error) && !["HttpClientError", "SchemaError", "Silent"].includes(error._tag)

const isFailed = (error: unknown): error is Failed =>
  Predicate.hasProperty(error, "_tag") && Predicate.hasProperty(error, "message") && typeof error.message === "string"

/** The message of the process, where its error is one of a later version; else that this is no answer, and why. */
const failedOf = Effect.fnUntraced(function* (address: string, error: unknown): Effect.fn.Return<Failed> {
  const response = HttpClientError.isHttpClientError(error) ? error.response : undefined
  const said = response === undefined ? undefined : yield* Effect.orElseSucceed(response.json, () => undefined)
  if (response !== undefined && response.status >= 400 && isFailed(said)) {
    const code = response.status < 500 ? exitCodes.refused : exitCodes.unavailable
    return new CommandFailed({ message: said.message, code })
  }
  const isOther = response !== undefined || (Predicate.hasProperty(error, "_tag") && error._tag === "SchemaError")
  const status = response === undefined ? "" : `, with status ${response.status},`
  const what = isOther
    ? `answers${status} something else than this version of the command knows`
    : "gives no answer of the admin API"
  return new NoAnswer({ message: `${address} ${what}: ${reasonOf(error)}` })
})
