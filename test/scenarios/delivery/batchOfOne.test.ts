import { assert, describe } from "@effect/vitest"
import { Binding, EventBusError, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, orders, scenario, start } from "../bus.ts"

class Flaky extends Schema.TaggedError<Flaky>()("Flaky", {}) {}
class Harmless extends Schema.TaggedError<Harmless>()("Harmless", {}) {}

describe("a record of a batch that is tried again alone", () => {
  scenario("a BatchProcessing error about a batch of one is routed by the error that it contains", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a", "b", "c"])
      let calls = 0
      const app = yield* start(
        Binding.makeBatch("orders", {
          ...orders,
          retry: RetryPolicy.blocking({ maxAttempts: 3, initialBackoff: "100 millis", jitter: 0 }),
          handleBatch: ({ deliveries }): Effect.Effect<void, EventBusError.BatchProcessing | Flaky | Harmless> => {
            const index = deliveries.findIndex(({ value }) => value === "b")
            if (index < 0) return Effect.void
            return Effect.fail(EventBusError.BatchProcessing.from(index, ++calls === 1 ? new Flaky() : new Harmless()))
          },
          onError: { Flaky: Route.retry, Harmless: Route.skip }
        })
      )
      yield* advance("1 second")
      assert.deepStrictEqual(
        app.of("Settled").map(({ record, settlement }) => [record.offset, settlement]),
        [
          [0n, "Handled"],
          [1n, "Skipped"],
          [2n, "Handled"]
        ]
      )
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
    })
  )
})
