import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Binding, Hostname, LogFormat, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger, Redacted, References, Schema } from "effect"
import { advance, append, orders, publish, scenario, settle, start } from "../scenarios/bus.ts"

class Declined extends Schema.TaggedError<Declined>()("Declined", {}) {}

/** Runs the effect with a logger that keeps its lines. */
const logged = Effect.fnUntraced(function* <A, E, R>(
  effect: (lines: ReadonlyArray<string>) => Effect.Effect<A, E, R>,
  format = LogFormat.text
) {
  const lines: Array<string> = []
  const keep = Logger.map(format, (line) => void lines.push(line))
  const here = Effect.provideService(effect(lines), Hostname.Hostname, "host")
  return yield* Effect.provide(here, Logger.layer([keep]))
})

const createTopic = Effect.fnUntraced(function* (topic: string) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic(topic)
})

const ofHandler = (lines: ReadonlyArray<string>) => lines.filter((line) => line.includes("charging"))

describe("log lines", () => {
  scenario("OBS-14 a handler's own lines name their record, in the text form of connector seed §4.13", () =>
    logged((lines) =>
      Effect.gen(function* () {
        yield* createTopic("orders.events")
        yield* append("orders.events", 0, ["a", "b"])
        yield* start(
          Binding.make("orders", {
            ...orders,
            topic: "orders.events",
            groupId: "order-group",
            handler: ({ value }) =>
              Effect.gen(function* () {
                yield* Effect.log("charging", value)
                yield* Effect.sleep("1 second")
                yield* Effect.annotateLogs(Effect.logWarning("charging took long"), { cents: 5 })
              })
          })
        )
        yield* advance("5 seconds")
        assert.deepStrictEqual(ofHandler(lines), [
          "INFO [orders|orders.events|0|0|order-group|host-0] charging a",
          "WARN [orders|orders.events|0|0|order-group|host-0] charging took long cents=5",
          "INFO [orders|orders.events|0|1|order-group|host-0] charging b",
          "WARN [orders|orders.events|0|1|order-group|host-0] charging took long cents=5"
        ])
      })
    )
  )

  scenario("OBS-14 records that run side by side log their own offsets; a retry logs its tier", () =>
    logged((lines) =>
      Effect.gen(function* () {
        yield* createTopic("orders")
        yield* append("orders", 0, ["a", "b"])
        yield* start(
          Binding.make("orders", {
            ...orders,
            processingOrder: "unordered",
            onError: { Declined: Route.retry },
            retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 minute"] }),
            handler: ({ value, tier }) =>
              Effect.gen(function* () {
                yield* Effect.sleep(value === "a" ? "2 seconds" : "1 second")
                yield* Effect.log("charging", value)
                if (value === "b" && tier === 0) return yield* new Declined()
              })
          })
        )
        yield* advance("5 seconds")
        assert.deepStrictEqual(ofHandler(lines), [
          "INFO [orders|orders|0|1|billing|host-0] charging b",
          "INFO [orders|orders|0|0|billing|host-0] charging a"
        ])
        yield* advance("2 minutes")
        assert.deepStrictEqual(ofHandler(lines).slice(2), [
          "INFO [orders|orders.retry-1|0|0|billing|host-0] charging b retryTier=1"
        ])
      })
    )
  )

  scenario(
    "OBS-14 a batch logs its first offset; the connector's own lines have the same fields, and no key or value",
    () =>
      logged(
        (lines) =>
          Effect.gen(function* () {
            yield* createTopic("orders")
            yield* publish("orders", ["secret-value", "secret-value"], () => "secret-key")
            yield* start(
              Binding.makeBatch("orders", {
                ...orders,
                onError: { Declined: Route.retry },
                retry: RetryPolicy.none,
                handleBatch: () => Effect.andThen(Effect.log("charging"), new Declined())
              })
            )
            yield* settle
            const parsed: ReadonlyArray<Record<string, unknown>> = lines.map((line) => JSON.parse(line))
            const place = {
              cluster: "default",
              bindingName: "orders",
              topic: "orders",
              partition: 0,
              offset: 0,
              consumerGroup: "billing",
              consumerInstance: "host-0",
              retryTier: 0
            }
            const first = parsed.find(({ message }) => message === "charging")
            assert.deepStrictEqual(first, {
              ...place,
              timestamp: "1970-01-01T00:00:00.000Z",
              level: "INFO",
              message: "charging"
            })
            const deadLettered = parsed.find(({ message }) => String(message).startsWith("Record dead-lettered"))
            assert.deepStrictEqual(
              { ...deadLettered, message: "", cause: "" },
              {
                ...place,
                timestamp: "1970-01-01T00:00:00.000Z",
                level: "WARN",
                message: "",
                cause: ""
              }
            )
            assert.match(String(deadLettered?.["cause"]), /^Declined: /)
            assert.isFalse(lines.some((line) => line.includes("secret")))
          }),
        LogFormat.json
      )
  )

  scenario("OBS-14 a logger that passes annotations to the console shows their values", () =>
    Effect.gen(function* () {
      yield* createTopic("orders")
      yield* append("orders", 0, ["a"])
      const shown: Array<string> = []
      const handler = () =>
        Effect.map(References.CurrentLogAnnotations, (annotations) => void shown.push(inspect(annotations)))
      yield* start(Binding.make("orders", { ...orders, handler }))
      assert.include(shown[0], "offset: 0n")
      assert.include(shown[0], "retryTier: 0")
    })
  )

  it.effect("OBS-14 SEC-01 a message forges no line, a secret is not shown, a hostile value ends no program", () =>
    logged((lines) =>
      Effect.gen(function* () {
        yield* Effect.log("first\nINFO [orders|orders|0|0|g|h] forged", { key: Redacted.make("hunter2"), big: 2n })
        const cyclic: Record<string, unknown> = { name: "loop" }
        cyclic["self"] = cyclic
        yield* Effect.log(cyclic)
        yield* Effect.log({
          get broken() {
            throw new Error("no")
          }
        })
        // Neither JSON nor text can be made of it.
        const hostile = Object.defineProperty(Object.create(null), "broken", {
          enumerable: true,
          get: () => lines.at(99)!.length
        })
        yield* Effect.annotateLogs(Effect.log(hostile), { hostile })
        assert.deepStrictEqual(lines, [
          'INFO first\\u000aINFO [orders|orders|0|0|g|h] forged {"key":"<redacted>","big":2}',
          'INFO {"name":"loop","self":"[Circular]"}',
          "INFO [object Object]",
          "INFO a value that cannot be written hostile=a value that cannot be written"
        ])
      })
    )
  )

  it.effect(
    "OBS-14 a JSON line has cause and span; a message that cannot be written is left out, and the line stays",
    () =>
      logged(
        (lines) =>
          Effect.gen(function* () {
            const span = yield* Effect.currentSpan
            yield* Effect.logError("failed", new Error("boom"))
            yield* Effect.logInfo({ toJSON: () => JSON.parse("{") })
            const [failed, unwritable] = lines.map((line) => JSON.parse(line))
            assert.strictEqual(failed.level, "ERROR")
            assert.strictEqual(failed.trace_id, span.traceId)
            assert.strictEqual(failed.span_id, span.spanId)
            assert.include(JSON.stringify(failed), "boom")
            assert.strictEqual(unwritable.message, "a message that cannot be written")
          }).pipe(Effect.withSpan("work")),
        LogFormat.json
      )
  )
})
