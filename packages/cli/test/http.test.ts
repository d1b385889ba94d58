/** `eventbus run --http`: a process with probes, metrics and the admin API, whose cluster is away. */
import { type AddressInfo, createServer, type Server } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventbus, folderWith, program, start } from "./eventbus.ts"

const app = `eventbus:
  bindings:
    orders: { topic: orders, group-id: billing, handler: charge }
`

/** Nobody listens there. */
const away = ["--brokers", "127.0.0.1:9"]

const portOf = async (out: () => string): Promise<string> => {
  for (let round = 0; round < 600; round++) {
    const port = /Admin API listens on http:\/\/\S*:(\d+)/.exec(out())?.[1]
    if (port !== undefined) return port
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(out())
}

describe("eventbus run --http", () => {
  it.live("OPS-19 serves /health/live, /health/ready and /metrics, and the admin API read-only to this machine", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({ "app.yaml": app })
      const running = start(folder, "run", "app.yaml", "--handlers", program("handlers"), ...away, "--http", "0")
      yield* Effect.addFinalizer(() => Effect.sync(() => running.process.kill("SIGKILL")))
      const port = yield* Effect.promise(() => portOf(running.out))
      const call = (path: string, method = "GET") =>
        Effect.promise(async () => {
          const response = await fetch(`http://127.0.0.1:${port}${path}`, { method })
          return { status: response.status, text: await response.text() }
        })
      const until = Effect.fnUntraced(function* (path: string, status: number) {
        for (let round = 0; round < 600; round++) {
          const answer = yield* call(path)
          if (answer.status === status) return answer
          yield* Effect.sleep("50 millis")
        }
        return yield* call(path)
      })
      assert.deepStrictEqual(yield* until("/health/live", 200), { status: 200, text: '{"status":"UP"}' })
      assert.strictEqual((yield* call("/health/ready")).status, 503)
      const { text: list } = yield* until("/eventbus/bindings", 200)
      assert.deepStrictEqual(
        JSON.parse(list).map(({ key, state }: Record<string, unknown>) => [key, state]),
        [["default:orders", "RUNNING"]]
      )
      const refused = yield* call("/eventbus/bindings/orders/pause", "POST")
      assert.deepStrictEqual([refused.status, JSON.parse(refused.text)._tag], [403, "ReadOnly"])
      const { text: metrics } = yield* call("/metrics")
      assert.match(metrics, /^eventbus_container_state\{.*binding="orders".*\} 1$/m)
      running.process.kill("SIGTERM")
      assert.strictEqual((yield* Effect.promise(() => running.ended)).code, 130)
    })
  )

  it.live("a port that is none, or is taken, is refused", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({ "app.yaml": app })
      const run = (port: string) =>
        eventbus(folder, "run", "app.yaml", "--handlers", program("handlers"), ...away, "--http", port)
      assert.deepStrictEqual(yield* run("70000"), {
        code: 2,
        out: "",
        err: "--http takes a port, from 0 to 65535; 0 is a free one\n"
      })
      assert.strictEqual((yield* run("many")).code, 2)
      const taken = yield* Effect.acquireRelease(
        Effect.callback<Server>((resume) => {
          const server = createServer().listen(0, () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.sync(() => server.close())
      )
      const { port } = taken.address() as AddressInfo
      const { code, err } = yield* run(String(port))
      assert.deepStrictEqual([code, err], [1, `--http ${port}: listen EADDRINUSE: address already in use :::${port}\n`])
    })
  )
})
