import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, orders, scenario, start, until } from "../scenarios/bus.ts"

class Boom extends Schema.TaggedError<Boom>()("Boom", {}) {}

const short = {
  ...orders,
  sessionTimeout: "6 seconds",
  heartbeatInterval: "2 seconds",
  maxPollRecords: 1,
  retry: RetryPolicy.blocking({ maxAttempts: 5, initialBackoff: "1 second", maxBackoff: "4 seconds", jitter: 0 })
} as const

describe("C17 backoff in place starves heartbeats (async handlers; a handler that blocks the event loop needs a real process)", () => {
  scenario(
    "REB-01 REB-12 five tries of 3 s with backoff, two instances: no rebalance, each attempt once, never in parallel",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["v"])
        let running = 0
        let most = 0
        let calls = 0
        const binding = Binding.make("orders", {
          ...short,
          handler: () =>
            Effect.gen(function* () {
              calls++
              most = Math.max(most, ++running)
              yield* Effect.sleep("3 seconds")
              running--
              return yield* new Boom()
            }),
          onError: { Boom: Route.retry }
        })
        const one = yield* start(binding)
        const two = yield* start(binding)
        yield* advance("1 second")
        const { generation } = yield* memory.group("billing")
        yield* until(() => one.of("Settled").length + two.of("Settled").length === 1, "1 second")
        assert.strictEqual((yield* memory.group("billing")).generation, generation)
        assert.deepStrictEqual([calls, most], [5, 1])
        assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 1)
      })
  )

  scenario("REB-01 one success that takes 15 s is not handled twice", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["v"])
      let calls = 0
      const binding = Binding.make("orders", {
        ...short,
        handler: () =>
          Effect.andThen(
            Effect.sync(() => calls++),
            Effect.sleep("15 seconds")
          )
      })
      yield* start(binding)
      yield* start(binding)
      for (let second = 0; second < 30; second++) yield* advance("1 second")
      assert.strictEqual(calls, 1)
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
    })
  )

  scenario("REB-04 a binding that is paused for 30 s stays in the group", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const app = yield* start(Binding.make("orders", { ...short, handler: () => Effect.void }))
      const { generation } = yield* memory.group("billing")
      yield* app.connector.pause("orders")
      for (let second = 0; second < 30; second++) yield* advance("1 second")
      const group = yield* memory.group("billing")
      assert.deepStrictEqual([group.generation, group.members.length], [generation, 1])
    })
  )
})
