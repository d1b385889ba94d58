import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, orders, scenario, settle, start, until, valuesOf } from "../scenarios/bus.ts"

class Boom extends Schema.TaggedError<Boom>()("Boom", {}) {}

describe("C32 a commit must not count every record before the failed index as complete", () => {
  scenario(
    "OFF-06 record 2 is slow, record 5 fails fast, 3 and 4 are done: the commit stops at 2 until it is settled",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append(
          "orders",
          0,
          Array.from({ length: 10 }, (_, index) => String(index))
        )
        const handled: Array<string> = []
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            processingOrder: "unordered",
            maxPollInterval: "10 seconds",
            maxPollRecords: 1,
            retry: RetryPolicy.none,
            handler: ({ value }) => {
              if (value === "5") return Effect.fail(new Boom())
              return Effect.andThen(
                value === "2" ? Effect.never : Effect.void,
                Effect.sync(() => handled.push(value))
              )
            },
            onError: { Boom: Route.retry }
          })
        )
        yield* advance("6 seconds")
        assert.deepStrictEqual([...handled].sort(), ["0", "1", "3", "4", "6", "7", "8", "9"])
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["5"])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
        yield* advance("1 second")
        yield* settle
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["5", "2"])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 10n)
        assert.strictEqual(app.of("ProcessingBudgetReached").length, 1)
      })
  )

  scenario("OFF-06 REB-02 a batch with a slow record: the safety valve commits exactly the finished prefix, once", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append(
        "orders",
        0,
        Array.from({ length: 5 }, (_, index) => String(index))
      )
      const handled: Array<string> = []
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          listenerType: "BATCH",
          maxPollInterval: "10 seconds",
          retry: RetryPolicy.none,
          handler: ({ value }) =>
            Effect.andThen(
              Effect.sleep("4 seconds"),
              Effect.sync(() => handled.push(value))
            )
        })
      )
      yield* until(() => app.of("ProcessingBudgetReached").length === 1, "1 second")
      yield* settle
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
      yield* until(() => handled.length === 5, "1 second")
      assert.deepStrictEqual(handled, ["0", "1", "2", "3", "4"])
    })
  )
})
