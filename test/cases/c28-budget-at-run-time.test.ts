import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { append, headersOf, orders, scenario, start, until } from "../scenarios/bus.ts"

class Boom extends Schema.TaggedError<Boom>()("Boom", {}) {}

describe("C28 the budget at run time, when handler time was not in the startup sum", () => {
  scenario(
    "REB-02 REB-03 five failing records of 2 s, poll interval 10 s: no rebalance, and the exhausted budget is reported",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["0", "1", "2", "3", "4"])
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            listenerType: "BATCH",
            maxPollInterval: "10 seconds",
            maxPollRecords: 5,
            retry: RetryPolicy.blocking({ maxAttempts: 3, initialBackoff: "600 millis", multiplier: 1, jitter: 0 }),
            handler: () => Effect.andThen(Effect.sleep("2 seconds"), Effect.fail(new Boom())),
            onError: { Boom: Route.retry }
          })
        )
        const { generation } = yield* memory.group("billing")
        yield* until(() => app.of("Settled").length === 5, "500 millis")
        assert.strictEqual((yield* memory.group("billing")).generation, generation)
        const letters = yield* memory.log("orders.DLT", 0)
        assert.strictEqual(letters.length, 5)
        // 2 s + 0.6 s + 2 s + 0.6 s fit into 7 s; the third run is cut off there.
        for (const headers of letters.map(headersOf)) {
          assert.strictEqual(headers.get("x-eventbus-last-exception-class"), "ProcessingBudgetExceeded")
          assert.strictEqual(headers.get("x-eventbus-total-attempts"), "3")
        }
        assert.isAbove(app.of("ProcessingBudgetReached").length, 0)
      })
  )
})
