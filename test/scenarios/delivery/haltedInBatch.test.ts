import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, start } from "../bus.ts"

describe("a halted record of a batch", () => {
  scenario("is finished in order when the batch's budget ends meanwhile, and the records behind it are committed", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a", "b"])
      let failures = 0
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          listenerType: "BATCH",
          orderingMode: "STRICT",
          onExhausted: "halt",
          maxPollRecords: 2,
          maxPollInterval: "10 seconds",
          retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "100 millis", jitter: 0 }),
          handler: ({ value }) =>
            Effect.suspend(() => (value === "a" && ++failures < 3 ? Effect.die("no") : Effect.void))
        })
      )
      // Between two attempts, for longer than the 7 seconds of the budget.
      yield* app.connector.pause("orders")
      yield* advance("20 seconds")
      yield* app.connector.resume("orders")
      yield* advance("1 second")
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      yield* app.connector.resume("orders")
      yield* advance("1 second")
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
    })
  )
})
