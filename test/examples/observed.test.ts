import { createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse } from "../observability/promql.ts"
import { start } from "./program.ts"

const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

describe("example programs", () => {
  it.live(
    "OBS-16 observed: a running service answers a scrape and logs JSON lines; an unreachable collector does no harm",
    () =>
      Effect.gen(function* () {
        const port = yield* freePort
        const program = yield* start("observed.ts", {
          METRICS_PORT: String(port),
          OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9"
        })
        yield* program.writes("charging o-2")
        const scrape = yield* Effect.promise(async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text())
        const processed = parse(scrape).get("eventbus_records_processed_total")
        assert.deepStrictEqual(
          processed?.map((labels) => Object.fromEntries(labels)),
          [{ cluster: "default", binding: "orders", topic: "orders", partition: "0" }]
        )
        const line = program.lines().find((text) => text.includes("charging o-2"))
        const { message, offset, trace_id } = JSON.parse(line ?? "{}")
        assert.deepStrictEqual([message, offset, String(trace_id).length], ["charging o-2", 1, 32])
        yield* program.signal("SIGTERM")
        assert.strictEqual(yield* program.exit, 130)
      }),
    90_000
  )
})
