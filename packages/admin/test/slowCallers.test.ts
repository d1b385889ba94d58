/** OPS-21: a caller that opens the stream and reads nothing of it costs little, and not for ever. */
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { createServer } from "node:http"
import { type AddressInfo, connect, type Server, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { TestClock } from "effect/testing"
import * as StuckCallers from "../src/internal/stuckCallers.ts"
import { binding, counting, eventually, everything, ownServer, start, token } from "./api.ts"

const listening = (server: Server) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<Server>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))),
      () => Effect.sync(() => server.close())
    ),
    () => (server.address() as AddressInfo).port
  )

type Counted = Effect.Success<ReturnType<typeof counting>>

const servers: Readonly<Record<string, (counted: Counted) => Effect.Effect<number, unknown, Scope.Scope>>> = {
  "node:http": ({ web }) => listening(createServer(web.nodeListener)),
  "the server of its own": ({ admin }) => ownServer(admin)
}

/** A caller that sends its request, and reads nothing. */
const stuckAt = (port: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const socket = connect(port, "127.0.0.1").pause()
      socket.on("error", () => {})
      socket.write(`GET /eventbus/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`)
      return socket
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

/** The sockets of requests, as the servers of this process see them. */
const serverSockets = Effect.acquireRelease(
  Effect.sync(() => {
    const sockets: Array<Socket> = []
    const note = (message: unknown) => void sockets.push((message as { readonly socket: Socket }).socket)
    subscribe("http.server.request.start", note)
    return { sockets, stop: () => unsubscribe("http.server.request.start", note) }
  }),
  ({ stop }) => Effect.sync(stop)
)

const turn = Effect.promise(() => new Promise((resume) => setTimeout(resume, 5)))

describe("OPS-21 a caller of the stream that reads nothing", () => {
  for (const [server, serve] of Object.entries(servers)) {
    it.effect(`${server}: holds two states at most, however many come, and its connection has an end`, () =>
      Effect.gen(function* () {
        const { sockets } = yield* serverSockets
        const program = yield* start({ bindings: [binding("orders", { autoStartup: false })] })
        const megabyte = "x".repeat(1_000_000)
        let states = 0
        const list = Effect.map(program.admin.list, ([first]) => [{ ...first!, topic: `${states++}${megabyte}` }])
        const counted = yield* counting(program, { authorizer: everything }, list)
        const port = yield* serve(counted)
        const caller = yield* stuckAt(port)
        // Closed before the server, which waits for it otherwise.
        while (counted.looks() === 0) yield* turn
        let most = 0
        for (let second = 0; second < 60; second++) {
          yield* TestClock.adjust("1 second")
          yield* turn
          most = Math.max(most, sockets[0]!.writableLength)
        }
        // Some of it is in buffers of the system. From then on nobody computes a state for this caller.
        assert.isBelow(most, 3_000_000)
        assert.isBelow(counted.looks(), 30)
        assert.strictEqual(sockets[0]!.timeout, 60_000)
        caller.destroy()
        while (!sockets[0]!.destroyed) yield* turn
        const looks = counted.looks()
        for (let second = 0; second < 5; second++) {
          yield* TestClock.adjust("1 second")
          yield* turn
        }
        assert.strictEqual(counted.looks(), looks)
      })
    )
  }

  it.live("loses its connection once nothing has gone over it for a while; one that reads keeps it", () =>
    Effect.gen(function* () {
      const { sockets } = yield* serverSockets
      const event = Buffer.alloc(100_000, "x")
      const port = yield* listening(
        createServer((_, response) => {
          StuckCallers.end(response, 300)
          const timer = setInterval(() => response.writableNeedDrain || response.write(event), 50)
          response.on("close", () => clearInterval(timer))
        })
      )
      const reading = yield* stuckAt(port)
      reading.resume()
      yield* stuckAt(port)
      const closed = eventually(
        Effect.sync(() => sockets.map(({ destroyed }) => destroyed)),
        (found) => found.some((each) => each)
      )
      assert.deepStrictEqual((yield* closed).sort(), [false, true])
      yield* Effect.sleep("500 millis")
      assert.strictEqual(reading.destroyed, false)
    })
  )
})
