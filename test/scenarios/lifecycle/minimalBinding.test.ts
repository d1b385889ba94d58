/** A name, a topic, a group and a handler: the connector does everything else. */
import { assert, describe } from "@effect/vitest"
import { Binding, LogFormat } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger } from "effect"
import { metered, valueOf } from "../../observability/series.ts"
import { advance, append, headersOf, settle, start, text, until } from "../bus.ts"

const labels = { cluster: "default", binding: "orders", topic: "orders" } as const

/** Runs the effect with a logger that keeps its lines. */
const logged = <A, E, R>(lines: Array<string>, effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, Logger.layer([Logger.map(LogFormat.text, (line) => void lines.push(line))]))

describe("a binding of a name, a topic, a group and a handler", () => {
  metered("BND-01 has offsets, retries in place and in tiers, dead letters, metrics, logs and lifecycle", () => {
    const lines: Array<string> = []
    const scenario = Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["good", "fails twice", "always fails"])
      const calls = new Map<string, number>()
      const binding = Binding.make("orders", {
        topic: "orders",
        groupId: "billing",
        handler: ({ value }) => {
          const what = text(value) ?? ""
          const call = (calls.get(what) ?? 0) + 1
          calls.set(what, call)
          const fails = what === "always fails" || (what === "fails twice" && call <= 2)
          return fails ? Effect.die(new Error("down")) : Effect.void
        }
      })
      const { connector, of } = yield* start(binding)
      assert.strictEqual(yield* connector.getState("orders"), "RUNNING")
      yield* until(() => of("Settled").length === 3, "100 millis")
      assert.deepStrictEqual(Object.fromEntries(calls), { good: 1, "fails twice": 3, "always fails": 3 })
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)

      // Three deliveries in each of three tiers, of three attempts each.
      yield* until(() => of("Settled").length === 12, "10 seconds")
      assert.strictEqual(calls.get("always fails"), 30)
      const [letter, ...others] = yield* memory.log("orders.DLT", 0)
      assert.deepStrictEqual([text(letter?.value), others.length], ["always fails", 0])
      assert.strictEqual(headersOf(letter).get("x-eventbus-dlt-reason"), "RETRIES_EXHAUSTED")
      assert.strictEqual(headersOf(letter).get("x-eventbus-total-attempts"), "30")
      assert.strictEqual(yield* valueOf("eventbus.records.processed", { ...labels, partition: "0" }), 2)
      assert.strictEqual(
        yield* valueOf("eventbus.records.dlq", {
          binding: "orders",
          topic: "orders.retry-3",
          reason: "RETRIES_EXHAUSTED"
        }),
        1
      )

      yield* connector.stop("orders")
      yield* append("orders", 0, ["later"])
      yield* advance("1 minute")
      assert.strictEqual(calls.get("later"), undefined)
      yield* connector.start("orders")
      yield* settle
      assert.strictEqual(calls.get("later"), 1)
      assert.strictEqual(calls.get("good"), 1)
      yield* connector.destroy("orders")
      for (const line of [
        "Binding is RUNNING, was CREATED",
        "Record routed to orders.retry-1 after attempt 3 of 30, next attempt at ",
        "Record dead-lettered to orders.DLT after attempt 30 of 30 (RETRIES_EXHAUSTED), original orders-0@",
        "Binding is STOPPED, was RUNNING; no more records begin, and those in work end first",
        "Binding is DESTROYED"
      ]) {
        assert.isTrue(
          lines.some((logged) => logged.includes(line)),
          line
        )
      }
    })
    return logged(lines, scenario)
  })

  metered(
    "BND-01 has a circuit breaker with one more setting and no code: it opens, pauses, tries again and closes",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append(
          "orders",
          0,
          Array.from({ length: 20 }, (_, index) => `v${index}`)
        )
        let isDown = true
        let handled = 0
        const { connector, of } = yield* start(
          Binding.make("orders", {
            ...{ topic: "orders", groupId: "billing", circuitBreaker: {} },
            handler: () => (isDown ? Effect.die(new Error("down")) : Effect.sync(() => handled++))
          })
        )
        yield* until(() => of("BreakerChanged").length > 0, "100 millis")
        assert.deepInclude(yield* connector.snapshot("orders"), { state: "PAUSED", pausedBy: ["breaker"] })
        isDown = false
        yield* until(() => handled === 20, "1 second")
        assert.deepStrictEqual(
          of("BreakerChanged").map(({ to }) => to),
          ["OPEN", "HALF_OPEN", "CLOSED"]
        )
        assert.strictEqual(yield* connector.getState("orders"), "RUNNING")
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 20n)
      })
  )
})
