import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { type App, advance, append, orders, scenario, start, until } from "./bus.ts"

class Down extends Data.TaggedError("Down")<object> {}

describe("a stop right behind a record that left for a retry topic", () => {
  for (const processingOrder of ["partition", "key", "unordered"] as const) {
    scenario(
      `ruling 6 LIF-12 ${processingOrder}: its copy is published, and what was handled behind it is committed with it`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          yield* memory.createTopic("orders.retry-1")
          const calls: Array<string> = []
          const stop = (): Effect.Effect<void> => Effect.orDie(app.connector.stop("orders"))
          const app: App = yield* start(
            Binding.make("orders", {
              ...orders,
              processingOrder,
              maxInFlight: 1,
              retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 hour"] }),
              onError: { Down: Route.retry },
              handler: ({ value }) =>
                Effect.gen(function* () {
                  calls.push(value)
                  if (value === "bad") return yield* new Down()
                  // Before the copy of the first record can have left.
                  yield* stop()
                  yield* Effect.sleep("2 seconds")
                })
            })
          )
          yield* append("orders", 0, ["bad", "slow", "later"])
          yield* until(() => calls.length === 2)
          yield* advance("3 seconds")
          assert.strictEqual(yield* app.connector.getState("orders"), "STOPPED")
          assert.deepStrictEqual(calls, ["bad", "slow"])
          assert.strictEqual((yield* memory.log("orders.retry-1", 0)).length, 1)
          assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
        })
    )
  }
})
