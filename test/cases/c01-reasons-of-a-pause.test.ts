import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, append, now, orders, scenario, start } from "../scenarios/bus.ts"

class Down extends Data.TaggedError("Down") {}

/** Main topic and a tier of 3 s; a breaker that opens with the second failure, for 500 ms. */
const binding = (calls: Array<readonly [string, number]>, fails: (value: string, tier: number) => boolean) =>
  Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["3 seconds"] }),
    circuitBreaker: { minimumNumberOfCalls: 2, slidingWindowSize: 2, waitDurationInOpenState: "500 millis" },
    onError: { Down: Route.retry },
    handler: ({ value, tier }) =>
      Effect.flatMap(now, (atMillis) => {
        calls.push([value, atMillis])
        return fails(value, tier) ? Effect.fail(new Down()) : Effect.void
      })
  })

describe("C01 no reason of a pause lifts another", () => {
  scenario("CB-14 LIF-04 run 1: paused while the breaker is open, past its time and past the tier's delay", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const calls: Array<readonly [string, number]> = []
      let isDown = true
      const app = yield* start(binding(calls, (value) => isDown && value !== "m3"))
      // The first failure waits in retry-1; the second opens the breaker and stays where it is.
      yield* append("orders", 0, ["m1", "m2", "m3"])
      yield* advance("100 millis")
      assert.deepStrictEqual((yield* app.connector.listBindings)[0]?.pausedBy, ["breaker"])
      yield* app.connector.pause("orders")
      isDown = false
      const before = calls.length
      yield* advance("10 seconds")
      yield* advance("10 minutes")
      assert.strictEqual(calls.length, before)
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      assert.deepStrictEqual((yield* app.connector.listBindings)[0]?.pausedBy, ["operator"])
      yield* app.connector.resume("orders")
      yield* advance("1 second")
      assert.sameMembers(
        calls.slice(before).map(([value]) => value),
        ["m1", "m2", "m3"]
      )
    })
  )

  scenario("RTY-18 ruling 9 run 2: paused first, then a tier's record becomes due", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const calls: Array<readonly [string, number]> = []
      const app = yield* start(binding(calls, (_, tier) => tier === 0))
      yield* append("orders", 0, ["m1"])
      yield* advance("1 second")
      yield* app.connector.pause("orders")
      yield* advance("1 minute")
      assert.strictEqual(calls.length, 1)
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      yield* app.connector.resume("orders")
      yield* advance("1 millis")
      assert.strictEqual(calls.length, 2)
    })
  )

  scenario(
    "RTY-18 ruling 9 run 3: resumed while a tier's record is due in 2 s: the main topic goes on, the tier waits",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const calls: Array<readonly [string, number]> = []
        const app = yield* start(binding(calls, (value, tier) => tier === 0 && value === "m1"))
        yield* append("orders", 0, ["m1"])
        yield* advance("500 millis")
        yield* app.connector.pause("orders")
        yield* append("orders", 0, ["m2"])
        yield* advance("500 millis")
        yield* app.connector.resume("orders")
        yield* advance("1 millis")
        assert.deepStrictEqual(calls, [
          ["m1", 0],
          ["m2", 1_000]
        ])
        yield* advance("1998 millis")
        assert.strictEqual(calls.length, 2)
        yield* advance("1 millis")
        assert.deepStrictEqual(calls[2], ["m1", 3_000])
      })
  )

  scenario("ruling 9 a rebalance keeps every reason: the operator's, the breaker's and the delay", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 4 })
      const calls: Array<readonly [string, number]> = []
      const app = yield* start(binding(calls, (value, tier) => tier === 0 && value === "m1"))
      yield* append("orders", 0, ["m1"])
      yield* advance("1 second")
      yield* app.connector.pause("orders")
      const others: Array<readonly [string, number]> = []
      const other = yield* start(binding(others, () => false))
      yield* other.close
      for (let partition = 0; partition < 4; partition++) yield* append("orders", partition, ["late"])
      yield* advance("1 minute")
      assert.strictEqual(calls.length, 1)
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      yield* app.connector.resume("orders")
      yield* advance("1 second")
      assert.strictEqual(calls.length, 6)
      assert.deepStrictEqual(others, [])
    })
  )
})
