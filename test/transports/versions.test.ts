/** Requests go out in a version that node and client share, and a node that shares none is named. */
import type { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { brokerErrors } from "../../packages/kafka-client/src/internal/connection/brokerErrors.ts"
import { connect } from "../../packages/kafka-client/src/internal/connection/cluster.ts"
import { securedOptions } from "../../packages/kafka-client/src/internal/connection/security.ts"
import { call } from "../../packages/kafka-client/src/internal/wire/requests.ts"
import * as Bus from "../integration/bus.ts"
import { answering, apiKey, makeFakeBroker } from "./fakeBroker.ts"
import { transports } from "./transports.ts"

const heartbeat = { groupId: "g", groupGenerationId: 1, memberId: "m", groupInstanceId: null }

describe.concurrent.each(transports)("versions ($name)", ({ name, open }) => {
  it.live("CLN-18 a request goes out in the newest version that the node speaks, too", () =>
    Effect.gen(function* () {
      const broker = yield* makeFakeBroker(answering)
      const versions: Array<number> = []
      broker.behave = (request) => {
        if (request.apiKey === apiKey.heartbeat) versions.push(request.apiVersion)
        request.answer()
      }
      for (const max of [1, 2, 3, 9]) {
        broker.spoken = new Map([...broker.spoken, [apiKey.heartbeat, { min: 0, max }]])
        const cluster = yield* connect(securedOptions({ brokers: [broker.address] }, open))
        yield* call(yield* cluster.node(1), "Heartbeat", heartbeat)
      }
      assert.deepStrictEqual(versions, [1, 2, 3, 3])
    })
  )

  // kafkajs keeps the versions of its first connection to a node.
  it.live.skipIf(name === "KafkaJs")(
    "CLN-18 a broker that goes back to an older release in a rolling upgrade gets requests in its versions",
    () =>
      Effect.gen(function* () {
        const broker = yield* makeFakeBroker(answering)
        const sockets = new Set<Socket>()
        const versions: Array<number> = []
        // As Kafka: a request in a version that it does not speak ends the connection.
        broker.behave = ({ apiKey: key, apiVersion, socket, answer }) => {
          sockets.add(socket)
          if (key === apiKey.heartbeat) versions.push(apiVersion)
          if (key === apiKey.heartbeat && apiVersion > broker.spoken.get(key)!.max) socket.destroy()
          else answer()
        }
        const cluster = yield* connect(securedOptions({ brokers: [broker.address] }, open))
        const beat = Effect.flatMap(cluster.node(1), (node) => call(node, "Heartbeat", heartbeat))
        for (const max of [3, 1, 2]) {
          broker.spoken = new Map([...broker.spoken, [apiKey.heartbeat, { min: 0, max }]])
          for (const socket of sockets) socket.destroy()
          yield* Bus.until("the connections have ended", () => broker.connections() === 0)
          // The client learns of the end by its next turn.
          yield* Effect.sleep("20 millis")
          yield* beat
          yield* beat
        }
        assert.deepStrictEqual(versions, [3, 3, 1, 1, 2, 2])
      })
  )

  it.live(
    "CLN-18 a broker that is too old, too new, or lacks a request is named with both ranges, and asked again later",
    () =>
      Effect.gen(function* () {
        const broker = yield* makeFakeBroker(answering)
        const options = securedOptions({ brokers: [broker.address] }, open)
        const failureWith = (
          spoken: ReadonlyArray<readonly [number, { readonly min: number; readonly max: number }]>
        ) =>
          Effect.gen(function* () {
            broker.spoken = new Map([...[...broker.spoken].filter(([key]) => key !== apiKey.heartbeat), ...spoken])
            const cluster = yield* connect(options)
            const failed = yield* Effect.flip(call(yield* cluster.node(1), "Heartbeat", heartbeat))
            assert.strictEqual(failed.type, "UNSUPPORTED_VERSION")
            return brokerErrors(options).of(failed, { operation: "send a heartbeat" })
          }).pipe(Effect.scoped)
        const at = `the broker at 127.0.0.1:${broker.port}`
        const client = "this client speaks 1 to 3"
        for (const [spoken, text] of [
          [[[apiKey.heartbeat, { min: 0, max: 0 }]], `${at} speaks Heartbeat 0 to 0, and ${client}`],
          [[[apiKey.heartbeat, { min: 4, max: 6 }]], `${at} speaks Heartbeat 4 to 6, and ${client}`],
          [[], `${at} does not speak Heartbeat, and ${client}`]
        ] as const) {
          const error = yield* failureWith(spoken)
          assert.include(error.message, text)
          assert.isTrue(error.retryable)
        }
      })
  )
})
