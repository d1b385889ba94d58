/** Brokers that answer what is no answer: the request fails by its type, in time, and the process goes on with bounded memory. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { connect } from "../../packages/kafka-client/src/internal/connection/cluster.ts"
import { securedOptions } from "../../packages/kafka-client/src/internal/connection/security.ts"
import { call } from "../../packages/kafka-client/src/internal/wire/requests.ts"
import { answering, apiKey, type FakeBroker, frame, makeFakeBroker } from "./fakeBroker.ts"
import { transports } from "./transports.ts"

const requestTimeout = 2_000

const heartbeat = { groupId: "g", groupGenerationId: 1, memberId: "m", groupInstanceId: null }

/** A length before bytes that are no frame. */
const lengthOf = (bytes: number): Buffer => {
  const length = Buffer.alloc(4)
  length.writeInt32BE(bytes)
  return length
}

/** Sends one byte at a time, so slowly that the answer is never whole. */
const drip: FakeBroker["behave"] = ({ correlationId, socket }) => {
  const bytes = frame(correlationId, Buffer.alloc(1_000))
  let at = 0
  const timer = setInterval(() => socket.write(bytes.subarray(at, ++at)), 100)
  socket.once("close", () => clearInterval(timer))
}

const cases: Readonly<Record<string, readonly [FakeBroker["behave"], type: string]>> = {
  "closes in the middle of an answer": [
    ({ correlationId, socket }) => void socket.end(frame(correlationId, Buffer.alloc(100)).subarray(0, 50)),
    "CONNECTION"
  ],
  "resets the connection": [({ socket }) => void socket.resetAndDestroy(), "CONNECTION"],
  "answers a request that was never sent": [
    ({ correlationId, socket }) => void socket.write(frame(correlationId + 7, Buffer.alloc(6))),
    "CONNECTION"
  ],
  "answers an earlier request again": [({ socket }) => void socket.write(frame(0, Buffer.alloc(6))), "REQUEST_TIMEOUT"],
  "sends a byte at a time": [drip, "REQUEST_TIMEOUT"],
  "answers with a body that ends too early": [
    ({ correlationId, socket }) => void socket.write(frame(correlationId, Buffer.alloc(3))),
    "CONNECTION"
  ],
  "announces an answer of 2 GB": [({ socket }) => void socket.write(lengthOf(2 ** 31 - 1)), "CONNECTION"],
  "announces an answer of less than nothing": [({ socket }) => void socket.write(lengthOf(-1)), "CONNECTION"],
  "answers as an HTTP server": [
    ({ socket }) => void socket.write("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
    "CONNECTION"
  ]
}

describe.concurrent.each(transports)("a broker that ($name)", (on) => {
  for (const [title, [misbehave, type]] of Object.entries(cases)) {
    it.live(`CLN-06 ${title} fails the request, and the next one works`, () =>
      Effect.gen(function* () {
        const broker = yield* makeFakeBroker(answering)
        const cluster = yield* connect(securedOptions({ brokers: [broker.address], requestTimeout }, on.open))
        broker.behave = (request) => (request.apiKey === apiKey.heartbeat ? misbehave(request) : request.answer())
        const ask = Effect.flatMap(cluster.node(1), (node) => call(node, "Heartbeat", heartbeat))
        const startedAt = performance.now()
        const failed = yield* Effect.flip(ask)
        const millis = performance.now() - startedAt
        assert.strictEqual(failed.type, type, failed.detail)
        assert.isBelow(millis, type === "CONNECTION" ? 1_500 : requestTimeout + 1_500)
        if (type === "REQUEST_TIMEOUT") assert.closeTo(failed.waitedMillis ?? 0, millis, 500)
        broker.behave = answering
        assert.strictEqual((yield* ask).errorCode, 0)
        yield* Effect.sleep(100)
        assert.isAtMost(broker.connections(), 1)
      })
    )
  }
})
