import { assert, describe } from "@effect/vitest"
import { Binding, EventBusError, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, orders, scenario, start } from "../bus.ts"

class Alarm extends Schema.TaggedError<Alarm>()("Alarm", {}) {}
class Transient extends Schema.TaggedError<Transient>()("Transient", {}) {}

describe("a batch of which two records failed", () => {
  scenario("OFF-14 ruling 18 a pause for the first record uses none of the second record's processing budget", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["alarming", "flaky"])
      const calls: Array<string> = []
      let isFirst = true
      const app = yield* start(
        Binding.makeBatch("orders", {
          ...orders,
          retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "1 second", jitter: 0 }),
          onError: { Alarm: Route.pause, Transient: Route.retry },
          handleBatch: ({ deliveries }): Effect.Effect<void, Alarm | Transient | EventBusError.BatchProcessing> =>
            Effect.suspend(() => {
              calls.push(deliveries.map(({ value }) => value).join(" "))
              if (!isFirst) return Effect.void
              isFirst = false
              const failures = [new Alarm(), new Transient()].map((error, index) => ({ index, error }))
              return Effect.fail(EventBusError.BatchProcessing.these([failures[0]!, failures[1]!]))
            })
        })
      )
      // Longer than 70 % of the default maxPollInterval.
      yield* advance("1 hour")
      yield* app.connector.resume("orders")
      yield* advance("2 seconds")
      assert.deepStrictEqual(calls, ["alarming flaky", "alarming", "flaky"])
      assert.deepStrictEqual(app.of("ProcessingBudgetReached"), [])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
    })
  )
})
