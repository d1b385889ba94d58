/** The request for a token by the client credentials grant (RFC 6749, section 4.4). It needs an HTTP client, so `clientCredentials.ts` loads it when a token is needed. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { ClientCredentials, Token } from "./options.ts"
import type { Secrets } from "./secrets.ts"
import { TokenUnavailable } from "./tokenUnavailable.ts"

const TokenResponse = Schema.Struct({
  access_token: Schema.NonEmptyString,
  /** Seconds. Some servers send a string. */
  expires_in: Schema.optionalKey(Schema.Union([Schema.Finite, Schema.FiniteFromString]))
})

const ErrorResponse = Schema.Struct({ error: Schema.String, error_description: Schema.optionalKey(Schema.String) })

/** Form encoding (RFC 6749, appendix B). */
const formEncoded = (text: string): string => new URLSearchParams({ "": text }).toString().slice(1)

/** Messages of the chain of causes, outermost first. */
const reasons = ({ cause }: { readonly cause?: unknown }): ReadonlyArray<string> =>
  cause instanceof Error ? [cause.message, ...reasons(cause)] : []

const request = (credentials: ClientCredentials, clientId: string, clientSecret: string) => {
  const { tokenEndpoint, scope, parameters, credentialsIn = "header" } = credentials
  const inForm = credentialsIn === "form"
  const base = HttpClientRequest.post(tokenEndpoint).pipe(
    HttpClientRequest.acceptJson,
    HttpClientRequest.bodyUrlParams({
      grant_type: "client_credentials",
      ...(scope !== undefined && { scope }),
      ...parameters,
      ...(inForm && { client_id: clientId, client_secret: clientSecret })
    })
  )
  return inForm ? base : HttpClientRequest.basicAuth(base, formEncoded(clientId), formEncoded(clientSecret))
}

/** Uses the `HttpClient` of the context, or else the platform's `fetch`. Tries three times when the server is unreachable or answers 408, 429 or 5xx. */
export const requestToken = (
  credentials: ClientCredentials,
  secrets: Secrets
): Effect.Effect<Token, TokenUnavailable> => {
  const { tokenEndpoint, extensions } = credentials
  const unavailable = (detail: string) => new TokenUnavailable({ tokenEndpoint, detail: secrets.redact(detail) })

  return Effect.gen(function* () {
    const clientId = yield* secrets.read("the client id", credentials.clientId)
    const clientSecret = yield* secrets.read("the client secret", credentials.clientSecret)
    const client = HttpClient.retryTransient(yield* HttpClient.HttpClient, { times: 2 })
    const requestedAt = yield* Clock.currentTimeMillis
    const response = yield* client.execute(request(credentials, clientId, clientSecret))
    const body = yield* Effect.orElseSucceed(response.json, () => undefined)
    if (response.status !== 200) {
      const denied = yield* Schema.decodeUnknownEffect(ErrorResponse)(body).pipe(
        Effect.map(({ error, error_description }) => `: ${error}${error_description ? `, ${error_description}` : ""}`),
        Effect.orElseSucceed(() => "")
      )
      return yield* Effect.fail(unavailable(`the server answered ${response.status}${denied}`))
    }
    const granted = yield* Effect.mapError(Schema.decodeUnknownEffect(TokenResponse)(body), () =>
      unavailable("the answer has no access_token")
    )
    const token: Token = {
      value: Redacted.make(granted.access_token),
      ...(granted.expires_in !== undefined && { expiresAt: requestedAt + granted.expires_in * 1000 }),
      ...(extensions !== undefined && { extensions })
    }
    return token
  }).pipe(
    Effect.catchTags({
      ClientFailure: ({ detail }) => Effect.fail(unavailable(detail)),
      HttpClientError: (error) => Effect.fail(unavailable([error.message, ...reasons(error.reason)].join(": ")))
    }),
    (asking) =>
      Effect.flatMap(Effect.serviceOption(HttpClient.HttpClient), (given) =>
        given._tag === "Some"
          ? Effect.provideService(asking, HttpClient.HttpClient, given.value)
          : Effect.provide(asking, FetchHttpClient.layer)
      )
  )
}
