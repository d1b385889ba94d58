import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, append, orders, scenario, settle, start, valuesOf } from "../scenarios/bus.ts"

class Bad extends Data.TaggedError("Bad") {}
class Unavailable extends Data.TaggedError("Unavailable") {}

describe("C20 a batch of mixed outcomes in an outage", () => {
  for (const strategy of ["SEEK_TO_FAILED", "DLQ_AND_CONTINUE"] as const) {
    for (const retry of [
      RetryPolicy.blocking({ maxAttempts: 1 }),
      RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 second"] })
    ]) {
      scenario(
        `OFF-11 CB-08 ruling 28 ${strategy}, ${retry.tiers.length} tiers: one copy of the bad record, none of the others, over two restarts`,
        () =>
          Effect.gen(function* () {
            const memory = yield* MemoryBroker.MemoryBroker
            yield* memory.createTopic("orders")
            let isDown = true
            const handled: Array<string> = []
            const binding = Binding.make("orders", {
              ...orders,
              listenerType: "BATCH",
              batchFailureStrategy: strategy,
              retry,
              circuitBreaker: { minimumNumberOfCalls: 1, slidingWindowSize: 1, waitDurationInOpenState: "30 seconds" },
              onError: { Bad: Route.deadLetter(), Unavailable: Route.retry },
              handler: ({ value }) =>
                Effect.suspend((): Effect.Effect<void, Bad | Unavailable> => {
                  if (value === "bad2") return Effect.fail(new Bad())
                  if (value === "out4" && isDown) return Effect.fail(new Unavailable())
                  handled.push(value)
                  return Effect.void
                })
            })
            yield* append("orders", 0, ["g1", "bad2", "g3", "out4", "g5"])
            for (let restart = 0; restart < 3; restart++) {
              const app = yield* start(binding)
              yield* advance("1 second")
              // The failure of out4 has opened it.
              assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
              yield* app.close
            }
            assert.deepStrictEqual(handled.slice(0, 2), ["g1", "g3"])
            isDown = false
            yield* start(binding)
            yield* advance("1 minute")
            yield* settle
            assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad2"])
            assert.strictEqual(yield* memory.committed("billing", "orders", 0), 5n)
            for (const value of ["out4", "g5"]) assert.strictEqual(handled.filter((each) => each === value).length, 1)
            assert.deepStrictEqual(handled, ["g1", "g3", "out4", "g5"])
          })
      )
    }
  }
})
