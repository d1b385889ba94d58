/** The client credentials grant, against a server on the loopback device. */
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { KafkaClient } from "@eventbus/kafka-client"
import { Effect, Redacted } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"

interface Asked {
  readonly authorization: string | undefined
  readonly form: Readonly<Record<string, string>>
}

interface Answer {
  readonly status: number
  readonly body: string
}

const bodyOf = async (request: IncomingMessage) => {
  let body = ""
  for await (const chunk of request) body += chunk
  return body
}

/** Sends the answers in order, and repeats the last one. */
const authorizationServer = (...answers: ReadonlyArray<Answer>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const asked: Array<Asked> = []
      const server = createServer(async (request, response) => {
        const form = Object.fromEntries(new URLSearchParams(await bodyOf(request)))
        asked.push({ authorization: request.headers.authorization, form })
        const { status, body } = answers[Math.min(asked.length, answers.length) - 1]!
        response.writeHead(status, { "content-type": "application/json" }).end(body)
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const tokenEndpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`
      return { asked, server, tokenEndpoint }
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )

const granted: Answer = { status: 200, body: JSON.stringify({ access_token: "the-token", expires_in: 300 }) }
const client = { clientId: "app:1", clientSecret: Redacted.make("s3cret/+=") }

describe("KafkaClient.clientCredentials", () => {
  it.live("sends id and secret in the header, form-encoded, and reads the token and its lifetime", () =>
    Effect.gen(function* () {
      const { asked, tokenEndpoint } = yield* authorizationServer(granted)
      const before = Date.now()
      const extensions = { logicalCluster: "lkc-1" }
      const token = yield* KafkaClient.clientCredentials({ ...client, tokenEndpoint, scope: "kafka", extensions })
      assert.strictEqual(Redacted.value(token.value), "the-token")
      assert.deepStrictEqual(token.extensions, extensions)
      assert.isAtLeast(token.expiresAt ?? 0, before + 300_000)
      assert.isAtMost(token.expiresAt ?? 0, Date.now() + 300_000)
      assert.deepStrictEqual(asked, [
        {
          authorization: `Basic ${Buffer.from("app%3A1:s3cret%2F%2B%3D").toString("base64")}`,
          form: { grant_type: "client_credentials", scope: "kafka" }
        }
      ])
    })
  )

  it.live("sends them in the form when the server requires that, with more fields", () =>
    Effect.gen(function* () {
      const { asked, tokenEndpoint } = yield* authorizationServer(granted)
      const parameters = { audience: "kafka" }
      yield* KafkaClient.clientCredentials({ ...client, tokenEndpoint, credentialsIn: "form", parameters })
      const form = {
        ...{ grant_type: "client_credentials", audience: "kafka" },
        ...{ client_id: "app:1", client_secret: "s3cret/+=" }
      }
      assert.deepStrictEqual(asked, [{ authorization: undefined, form }])
    })
  )

  it.live("reads a token without a lifetime, and one whose lifetime is text", () =>
    Effect.gen(function* () {
      const { tokenEndpoint } = yield* authorizationServer(
        { status: 200, body: JSON.stringify({ access_token: "a" }) },
        { status: 200, body: JSON.stringify({ access_token: "b", expires_in: "60" }) }
      )
      assert.isUndefined((yield* KafkaClient.clientCredentials({ ...client, tokenEndpoint })).expiresAt)
      assert.isNumber((yield* KafkaClient.clientCredentials({ ...client, tokenEndpoint })).expiresAt)
    })
  )

  it.live("SEC-01 a refusal fails once, with the server's reason and without the secret", () =>
    Effect.gen(function* () {
      const body = JSON.stringify({ error: "invalid_client", error_description: "s3cret/+= is wrong" })
      const { asked, tokenEndpoint } = yield* authorizationServer({ status: 401, body })
      const error = yield* Effect.flip(KafkaClient.clientCredentials({ ...client, tokenEndpoint }))
      assert.strictEqual(error._tag, "TokenUnavailable")
      assert.strictEqual(
        error.message,
        `no token from ${tokenEndpoint}: the server answered 401: invalid_client, <redacted> is wrong`
      )
      assert.notInclude(inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error), "s3cret")
      assert.strictEqual(asked.length, 1)
    })
  )

  it.live("an unusable answer is TokenUnavailable", () =>
    Effect.gen(function* () {
      const { tokenEndpoint } = yield* authorizationServer(
        { status: 200, body: "<html>" },
        { status: 200, body: JSON.stringify({ access_token: "" }) },
        { status: 404, body: "<html>" }
      )
      const details: Array<string> = []
      for (let n = 0; n < 3; n++) {
        details.push((yield* Effect.flip(KafkaClient.clientCredentials({ ...client, tokenEndpoint }))).detail)
      }
      assert.deepStrictEqual(details, [
        "the answer has no access_token",
        "the answer has no access_token",
        "the server answered 404"
      ])
    })
  )

  it.live("a busy server gets three requests", () =>
    Effect.gen(function* () {
      const busy: Answer = { status: 503, body: "" }
      const { asked, tokenEndpoint } = yield* authorizationServer(busy, busy, granted)
      yield* KafkaClient.clientCredentials({ ...client, tokenEndpoint })
      assert.strictEqual(asked.length, 3)
    })
  )

  it.live("an unreachable server is TokenUnavailable, with the reason", () =>
    Effect.gen(function* () {
      const { tokenEndpoint } = yield* Effect.scoped(authorizationServer(granted))
      const error = yield* Effect.flip(KafkaClient.clientCredentials({ ...client, tokenEndpoint }))
      assert.strictEqual(error._tag, "TokenUnavailable")
      assert.include(error.message, "ECONNREFUSED")
    })
  )

  it.effect("SEC-01 an endpoint with a user and a password is TokenUnavailable at once, and shows neither", () =>
    Effect.gen(function* () {
      const tokenEndpoint = "https://app:hunter2@idp.invalid/token"
      const error = yield* Effect.flip(KafkaClient.clientCredentials({ ...client, tokenEndpoint }))
      assert.strictEqual(
        error.message,
        "no token from 'https://<redacted>@idp.invalid/token': a URL of http or https, without user and password is expected"
      )
    })
  )

  it.effect("uses the HttpClient of the context", () =>
    Effect.gen(function* () {
      const stub = HttpClient.make((request) =>
        Effect.succeed(HttpClientResponse.fromWeb(request, new Response(granted.body)))
      )
      const token = yield* KafkaClient.clientCredentials({
        ...client,
        tokenEndpoint: "https://idp.invalid/token"
      }).pipe(Effect.provideService(HttpClient.HttpClient, stub))
      assert.strictEqual(Redacted.value(token.value), "the-token")
    })
  )
})
