import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, start, valuesOf } from "../bus.ts"

describe("a dead letter topic of the user's choice", () => {
  for (const target of ["orders", "orders.retry-1", "orders_retry-1", "", "a/b", "x".repeat(250), 42, {}, null]) {
    scenario(
      `DLT-02 NAM-08 ${JSON.stringify(target).slice(0, 20)} is not a valid target: no record goes in circles or gets stuck`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          let calls = 0
          const topicFor = () => target as string
          yield* start(
            Binding.make("orders", {
              ...orders,
              retry: RetryPolicy.tiered({
                blocking: { maxAttempts: 1 },
                tiers: [{ delay: "1 second", maxAttempts: 1 }]
              }),
              deadLetter: DeadLetter.withSettings(DeadLetter.storeOnly, { topicFor }),
              handler: () =>
                Effect.suspend(() => {
                  calls++
                  return Effect.die("no")
                })
            })
          )
          yield* append("orders", 0, ["x"])
          for (let second = 0; second < 20; second++) yield* advance("1 second")
          assert.strictEqual(calls, 2)
          assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["x"])
          assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
        })
    )
  }
})
