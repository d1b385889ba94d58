/** Connections open once for all that wait, within their time, and close with every request settled. */
import { createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import manifest from "../../../packages/kafka/package.json" with { type: "json" }
import { Writer } from "../../../packages/kafka-client/src/internal/protocol/writer.ts"
import {
  answering,
  apiKey,
  authenticating,
  clientOf,
  echo,
  failureOf,
  makeNode,
  type Received,
  ready,
  unsupportedMechanism
} from "./scriptedNode.ts"

const versionsOnly = (answer: () => void, key: number): void => {
  if (key === apiKey.apiVersions) answer()
}

describe.concurrent("connections", () => {
  it.live("senders at once share one attempt, and share its failure", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(answering())
      const { client } = yield* clientOf(node)
      yield* Effect.promise(() =>
        Promise.all([client.connect(), ...["a", "b", "c"].map((text) => client.send(echo(text)))])
      )
      assert.strictEqual(node.connections(), 1)
      assert.deepStrictEqual(client.versionsOf(apiKey.metadata), { min: 0, max: 5 })
      assert.isUndefined(client.versionsOf(999))
      client.closeAtOnce()
      node.onConnection = (socket) => void socket.destroy()
      const failures = yield* Effect.all(
        ["a", "b"].map((text) => failureOf(client.send(echo(text)))),
        {
          concurrency: "unbounded"
        }
      )
      assert.deepStrictEqual(
        failures.map(({ type }) => type),
        ["CONNECTION", "CONNECTION"]
      )
    })
  )

  it.live("a node that does not answer the handshake is given up within the connection time-out", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(() => {})
      const { client } = yield* clientOf(node, { connectionTimeoutMillis: 300 })
      const failed = yield* failureOf(client.connect())
      assert.strictEqual(failed.type, "REQUEST_TIMEOUT")
      assert.closeTo(failed.waitedMillis ?? 0, 300, 150)
      yield* Effect.sleep(50)
      assert.strictEqual(node.connections(), 0)
    })
  )

  it.live("a TLS handshake that does not end is a connection that was not accepted", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(() => {})
      const { client } = yield* clientOf(node, { connectionTimeoutMillis: 300, tls: async () => ({}) })
      assert.deepInclude(yield* failureOf(client.connect()), { type: "CONNECTION", detail: "Connection timeout" })
    })
  )

  it.live("TLS to a listener of plain text, and the other way, are named", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(() => {})
      node.onConnection = (socket) => void socket.once("data", () => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"))
      const secured = yield* clientOf(node, { tls: async () => ({}) })
      assert.strictEqual((yield* failureOf(secured.client.connect())).type, "TLS")
      node.onConnection = (socket) => void socket.once("data", () => socket.write(Buffer.from("15030300020246", "hex")))
      const plain = yield* clientOf(node)
      assert.deepInclude(yield* failureOf(plain.client.connect()), {
        type: "TLS",
        detail: "the listener speaks TLS: set `ssl`"
      })
    })
  )

  it.live("TLS options are read for each socket", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(() => {})
      node.onConnection = (socket) => void socket.destroy()
      let reads = 0
      const tls = async () => {
        reads++
        return {}
      }
      const { client } = yield* clientOf(node, { tls })
      yield* failureOf(client.connect())
      yield* failureOf(client.connect())
      assert.strictEqual(reads, 2)
    })
  )

  it.live("every refusal of a name with more than one address is in the failure", () =>
    Effect.gen(function* () {
      const port = yield* Effect.promise(
        () =>
          new Promise<number>((resolve) => {
            const server = createServer().listen(0, () => {
              const at = server.address()
              server.close(() => resolve(typeof at === "object" && at !== null ? at.port : 0))
            })
          })
      )
      const node = yield* makeNode(() => {})
      const { client } = yield* clientOf({ ...node, address: { host: "localhost", port } })
      const { detail, type } = yield* failureOf(client.connect())
      assert.strictEqual(type, "CONNECTION")
      assert.match(detail, /ECONNREFUSED/)
    })
  )

  it.live("`disconnect` lets answers that are due come", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(ready(({ answer }) => void setTimeout(answer, 200)))
      const { client } = yield* clientOf(node)
      yield* Effect.promise(client.connect)
      const due = client.send(echo("due"))
      yield* Effect.promise(client.disconnect)
      assert.strictEqual(yield* Effect.promise(() => due), "due")
      yield* Effect.sleep(50)
      assert.strictEqual(node.connections(), 0)
    })
  )

  it.live("`closeAtOnce` fails what waits, also for a handshake, and leaves no socket", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(({ answer, apiKey: key }) => versionsOnly(answer, key + 1))
      const { client } = yield* clientOf(node)
      const waiting = [failureOf(client.send(echo("a"))), failureOf(client.send(echo("b", { apiKey: apiKey.fetch })))]
      yield* Effect.sleep(50)
      client.closeAtOnce()
      for (const { detail } of yield* Effect.all(waiting))
        assert.strictEqual(detail, "the client closed the connection")
      yield* Effect.sleep(50)
      assert.strictEqual(node.connections(), 0)
    })
  )

  it.live("a closed transport opens no socket any more", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(answering())
      const { client, transport } = yield* clientOf(node)
      yield* Effect.promise(client.connect)
      const waiting = failureOf(client.send(echo("a")))
      transport.destroyAll()
      assert.strictEqual((yield* waiting).type, "CONNECTION")
      assert.deepInclude(yield* failureOf(client.send(echo("b"))), {
        type: "CONNECTION",
        detail: "the client is closed"
      })
      assert.strictEqual(node.received.filter(({ apiKey: key }) => key === apiKey.apiVersions).length, 1)
    })
  )

  it.live("CLN-18 the first request names the client and its version (KIP-511)", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(answering())
      const { client } = yield* clientOf(node)
      yield* Effect.promise(client.connect)
      const [{ apiKey: key, apiVersion, body }] = node.received as [Received]
      assert.deepStrictEqual([key, apiVersion], [apiKey.apiVersions, 3])
      const named = new Writer().noTags().compactString("eventbus-connector").compactString(manifest.version).noTags()
      assert.deepStrictEqual(body, Buffer.from(named.body.bytes))
      // Brokers take no other texts.
      for (const text of ["eventbus-connector", manifest.version])
        assert.match(text, /^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$/)
    })
  )

  it.live(
    "CLN-18 a node that does not know such a request is asked in the oldest version, on the same connection",
    () =>
      Effect.gen(function* () {
        const oldest = new Writer().int16(0).int32(1).int16(apiKey.metadata).int16(1).int16(4).body.bytes
        const node = yield* makeNode(({ answer, apiKey: key, apiVersion }) => {
          if (key !== apiKey.apiVersions) answer()
          else answer(apiVersion > 0 ? Buffer.from([0, 35, 0, 0, 0, 0]) : oldest)
        })
        const { client } = yield* clientOf(node)
        yield* Effect.promise(client.connect)
        assert.deepStrictEqual(
          node.received.map(({ apiVersion, connection }) => [apiVersion, connection]),
          [
            [3, 1],
            [0, 1]
          ]
        )
        assert.strictEqual(node.received[1]!.body.length, 0)
        assert.deepStrictEqual(client.versionsOf(apiKey.metadata), { min: 1, max: 4 })
        assert.strictEqual(yield* Effect.promise(() => client.send(echo("a"))), "a")
      })
  )

  it.live("CLN-18 a node that refuses to tell its versions, in whatever layout, is named as such", () =>
    Effect.gen(function* () {
      for (const [code, more, asked] of [
        [35, [], 0],
        [35, [2, 0, apiKey.apiVersions], 0],
        [42, [1, 0, 0, 0, 0, 0], 3]
      ] as const) {
        const node = yield* makeNode(({ answer }) => answer(Buffer.from([0, code, ...more])))
        const { client } = yield* clientOf(node)
        assert.deepInclude(yield* failureOf(client.connect()), {
          type: "UNSUPPORTED_VERSION",
          detail: `the broker answered error ${code} to ApiVersions ${asked}`
        })
      }
    })
  )

  it.live("a mechanism that the listener does not take is refused with those that it takes", () =>
    Effect.gen(function* () {
      for (const [mechanisms, text] of [
        [["SCRAM-SHA-256", "SCRAM-SHA-512"], "SCRAM-SHA-256, SCRAM-SHA-512"],
        [[], "no other one"]
      ] as const) {
        const node = yield* makeNode((request) =>
          request.apiKey === apiKey.saslHandshake
            ? request.answer(unsupportedMechanism(mechanisms))
            : answering()(request)
        )
        const { client } = yield* clientOf(node, authenticating())
        assert.deepInclude(yield* failureOf(client.connect()), {
          type: "AUTHENTICATION",
          detail: `SASL PLAIN is not supported by the server, which takes ${text}`
        })
      }
    })
  )
})
