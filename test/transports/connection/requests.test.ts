/** Requests to a node that answers late, wrongly, out of order, in drips, or not at all. Each request ends, with its cause. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answering, apiKey, clientOf, echo, failureOf, frame, makeNode, type Received, ready } from "./scriptedNode.ts"

const texts = Array.from({ length: 20 }, (_, index) => `text ${index}`)

describe.concurrent("requests", () => {
  it.live("answers that come out of order, and in one piece, go to their requests", () =>
    Effect.gen(function* () {
      const held: Array<Received> = []
      const node = yield* makeNode(
        ready((request) => {
          if (held.push(request) < texts.length) return
          request.socket.write(
            Buffer.concat(held.reverse().map(({ body, correlationId }) => frame(correlationId, body)))
          )
        })
      )
      const { client } = yield* clientOf(node)
      assert.deepStrictEqual(
        yield* Effect.promise(() => Promise.all(texts.map((text) => client.send(echo(text))))),
        texts
      )
      assert.strictEqual(node.received.filter(({ apiKey: key }) => key === apiKey.apiVersions).length, 1)
    })
  )

  it.live("answers that drip byte by byte are read, the handshake's too", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(answering())
      node.onConnection = (socket) => {
        const write = socket.write.bind(socket)
        socket.setNoDelay(true)
        let last = Promise.resolve()
        socket.write = (bytes: Buffer) => {
          for (const byte of bytes) {
            last = last
              .then(() => new Promise((resolve) => setImmediate(resolve)))
              .then(() => void write(Buffer.of(byte)))
          }
          return true
        }
      }
      const { client } = yield* clientOf(node)
      assert.strictEqual(yield* Effect.promise(() => client.send(echo("drip"))), "drip")
    })
  )

  it.live(
    "a late request ends the connection: it fails by its time-out, those behind it by name, and the next one works",
    () =>
      Effect.gen(function* () {
        const node = yield* makeNode(ready(({ answer, body }) => body.toString() !== "mute" && answer()))
        const { client } = yield* clientOf(node, { requestTimeoutMillis: 300 })
        yield* Effect.promise(client.connect)
        const late = failureOf(client.send(echo("mute")))
        const [timedOut, behind] = yield* Effect.all(
          [late, Effect.delay(failureOf(client.send(echo("mute", { timeoutMillis: 60_000 }))), 10)],
          { concurrency: "unbounded" }
        )
        assert.strictEqual(timedOut.type, "REQUEST_TIMEOUT")
        assert.closeTo(timedOut.waitedMillis ?? 0, 300, 150)
        assert.strictEqual(behind.type, "CONNECTION")
        assert.match(behind.detail, /did not answer Echo/)
        assert.isFalse(client.isConnected())
        assert.strictEqual(yield* Effect.promise(() => client.send(echo("next"))), "next")
        assert.strictEqual(node.received.at(-1)?.connection, 2)
      })
  )

  it.live("a request may wait longer than others for its answer", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(ready(({ answer }) => void setTimeout(answer, 600)))
      const { client } = yield* clientOf(node, { requestTimeoutMillis: 200 })
      assert.strictEqual(yield* Effect.promise(() => client.send(echo("join", { timeoutMillis: 5_000 }))), "join")
    })
  )

  it.live("CLN-17 an answer that cannot be read, and one that nobody asked for, end the connection", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(answering())
      const { client } = yield* clientOf(node)
      const decode = () => {
        throw new RangeError("8 bytes are not there")
      }
      const unreadable = yield* failureOf(client.send(echo("x", { decode })))
      assert.strictEqual(unreadable.type, "CONNECTION")
      assert.strictEqual(unreadable.detail, "not an answer of Kafka (8 bytes are not there)")
      node.script = ready(({ correlationId, socket }) => void socket.write(frame(correlationId + 1, Buffer.alloc(4))))
      const unasked = yield* failureOf(client.send(echo("y")))
      assert.match(unasked.detail, /^not an answer of Kafka \(.*which was not sent\)$/)
    })
  )

  it.live("answers to flexible versions are read behind the tagged fields of their header", () =>
    Effect.gen(function* () {
      const tags = Buffer.from([1, 9, 3, 0x61, 0x62, 0x63])
      const node = yield* makeNode(ready(({ answer, body }) => answer(Buffer.concat([tags, body.subarray(1)]))))
      const { client } = yield* clientOf(node)
      assert.strictEqual(yield* Effect.promise(() => client.send(echo("tagged", { isFlexible: true }))), "tagged")
    })
  )

  it.live("a body that cannot be written fails its request only", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(answering())
      const { client } = yield* clientOf(node)
      yield* Effect.promise(client.connect)
      const good = client.send(echo("good"))
      const encode = () => {
        throw new RangeError("too long")
      }
      assert.strictEqual((yield* failureOf(client.send(echo("", { encode })))).detail, "too long")
      assert.strictEqual(yield* Effect.promise(() => good), "good")
    })
  )

  it.live("a node that asks for less holds requests back, and never for longer than a request may take", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(answering())
      const { client } = yield* clientOf(node, { requestTimeoutMillis: 600 })
      const throttled = (throttleMillis: number) =>
        echo("slow", { decode: () => ({ answer: "throttled", throttleMillis }) })
      const nextAfter = (throttleMillis: number) =>
        Effect.promise(async () => {
          await client.send(throttled(throttleMillis))
          const startedAt = performance.now()
          await client.send(echo("next"))
          return performance.now() - startedAt
        })
      assert.closeTo(yield* nextAfter(200), 250, 100)
      assert.closeTo(yield* nextAfter(2 ** 31), 650, 100)
      assert.isBelow(yield* nextAfter(-5), 100)
    })
  )

  it.live("the connection for fetches opens with the first fetch, and other requests do not wait behind it", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(ready(({ answer, apiKey: key }) => key !== apiKey.fetch && answer()))
      const { client } = yield* clientOf(node)
      yield* Effect.promise(client.connect)
      assert.strictEqual(node.connections(), 1)
      const fetch = failureOf(client.send(echo("held", { apiKey: apiKey.fetch })))
      assert.strictEqual(yield* Effect.promise(() => client.send(echo("quick"))), "quick")
      assert.isFalse(client.isBusy())
      assert.strictEqual((yield* fetch).type, "REQUEST_TIMEOUT")
      assert.isTrue(client.isConnected())
    })
  )
})
