import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Binding, Serde } from "@eventbus/core"
import { OpenTelemetry } from "@eventbus/observability"
import { MemoryBroker } from "@eventbus/testkit"
import { Deferred, Effect, Layer, Redacted, Result } from "effect"
import { bytes } from "../scenarios/bus.ts"

/** Requests to a collector: path, headers and body of each. */
interface Received {
  readonly path: string
  readonly authorization: string | undefined
  readonly body: string
}

/** An OTLP/HTTP receiver that takes everything. */
const collector = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly received: ReadonlyArray<Received>; readonly close: () => void }>(
    (resume) => {
      const received: Array<Received> = []
      const server = createServer((request, response) => {
        const parts: Array<Buffer> = []
        request.on("data", (part: Buffer) => parts.push(part))
        request.on("end", () => {
          const { url: path = "", headers } = request
          received.push({ path, authorization: headers.authorization, body: Buffer.concat(parts).toString("utf8") })
          response.writeHead(200, { "content-type": "application/json" }).end("{}")
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}/`, received, close: () => server.close() }))
      })
    }
  ),
  ({ close }) => Effect.sync(close)
)

const traceId = "0af7651916cd43dd8448eb211c80319c"

/** Handles one record that has a trace, in a program of its own that ends then. */
const handleOne = (url: string) =>
  Effect.gen(function* () {
    const handled = yield* Deferred.make<void>()
    const memory = yield* MemoryBroker.MemoryBroker
    yield* memory.createTopic("orders")
    const headers = [{ key: "traceparent", value: bytes(`00-${traceId}-b7ad6b7169203331-01`) }]
    yield* memory.append("orders", 0, [{ value: bytes("o-1"), headers }])
    const orders = Binding.make("orders", {
      topic: "orders",
      groupId: "billing",
      value: Serde.string,
      handler: () =>
        Effect.log("charging").pipe(Effect.withSpan("charge"), Effect.andThen(Deferred.succeed(handled, undefined)))
    })
    const Connector = Binding.layer(orders).pipe(
      Layer.provide(
        OpenTelemetry.layer({
          serviceName: "billing-service",
          url,
          headers: { authorization: Redacted.make("Bearer token") },
          metricsInterval: "1 second"
        })
      )
    )
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* Layer.build(Connector)
        yield* Deferred.await(handled)
        yield* Effect.sleep("1500 millis")
      })
    )
  }).pipe(Effect.provide(MemoryBroker.layer()))

describe("OpenTelemetry", () => {
  it.live("OBS-16 OBS-15 spans, metrics and logs reach a collector, in the trace of the producer", () =>
    Effect.gen(function* () {
      const { url, received } = yield* collector
      yield* handleOne(url)
      const of = (path: string) => received.filter((request) => request.path === path).map(({ body }) => body)
      const spans = JSON.parse(of("/v1/traces")[0] ?? "{}").resourceSpans[0]
      assert.deepInclude(spans.resource.attributes, { key: "service.name", value: { stringValue: "billing-service" } })
      const all: ReadonlyArray<Record<string, unknown>> = spans.scopeSpans.flatMap(
        (scope: { readonly spans: ReadonlyArray<unknown> }) => scope.spans
      )
      const process = all.find(({ name }) => name === "process orders")
      const charge = all.find(({ name }) => name === "charge")
      assert.strictEqual(process?.["traceId"], traceId)
      assert.strictEqual(process?.["parentSpanId"], "b7ad6b7169203331")
      assert.strictEqual(process?.["kind"], 5)
      assert.strictEqual(charge?.["parentSpanId"], process?.["spanId"])
      const metrics = of("/v1/metrics").join("\n")
      for (const name of ["eventbus.records.processed", "eventbus.consumer.lag", "messaging.process.duration"]) {
        assert.include(metrics, `"${name}"`)
      }
      const logs = of("/v1/logs").join("\n")
      assert.include(logs, "charging")
      assert.include(logs, traceId)
      assert.include(logs, "consumerGroup")
      assert.deepStrictEqual(new Set(received.map(({ authorization }) => authorization)), new Set(["Bearer token"]))
    })
  )

  it.live(
    "OBS-16 an unreachable collector ends no program, and delays its end no longer than the limit",
    () =>
      Effect.gen(function* () {
        const startedMillis = Date.now()
        yield* handleOne("http://127.0.0.1:9")
        assert.isBelow(Date.now() - startedMillis, 20_000)
      }),
    30_000
  )

  it.live("only the requested signals are sent", () =>
    Effect.gen(function* () {
      const { url, received } = yield* collector
      const program = Effect.andThen(Effect.log("hello"), Effect.sleep("100 millis")).pipe(Effect.withSpan("work"))
      yield* Effect.provide(program, OpenTelemetry.layer({ serviceName: "s", url, signals: ["traces"] }))
      assert.deepStrictEqual(
        received.map(({ path }) => path),
        ["/v1/traces"]
      )
    })
  )

  it("ruling 84 SEC-01 options of another kind are refused, and no message shows a header", () => {
    for (const [wrong, path] of [
      [{ serviceName: "" }, "serviceName"],
      [{ url: "collector:4318" }, "url"],
      [{ headers: { authorization: 5 } }, "headers.authorization"],
      [{ headers: "Bearer hunter2" }, "headers"],
      [{ signals: ["trace"] }, "signals[0]"],
      [{ attributes: { region: {} } }, "attributes.region"]
    ] as const) {
      const options = { serviceName: "s", ...wrong } as unknown as OpenTelemetry.Options
      const refused = Result.try(() => OpenTelemetry.layer(options))
      assert(Result.isFailure(refused))
      assert.include(String(refused.failure), `OpenTelemetry.${path}`)
      assert.notInclude(String(refused.failure), "hunter2")
    }
  })
})
