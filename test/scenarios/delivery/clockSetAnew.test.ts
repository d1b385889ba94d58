import { assert, describe } from "@effect/vitest"
import { Binding, type BindingOptions, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Data, Effect } from "effect"
import { advance, append, orders, publish, settle, start, valuesOf } from "../bus.ts"
import { withWallClock } from "../wallClock.ts"

class Down extends Data.TaggedError("Down") {}

const hour = 3_600_000

/** Real time since the test began, whatever the wall clock shows. */
const realMillis = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))

/** A binding that fails each value once, and when each was handled. */
const failingOnce = (settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = {}) => {
  const handled: Array<{ readonly value: string; readonly atMillis: number }> = []
  const binding = Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["5 minutes"] }),
    ...settings,
    onError: { Down: Route.retry },
    handler: ({ value, tier }) =>
      tier === 0
        ? Effect.fail(new Down())
        : Effect.map(realMillis, (atMillis) => void handled.push({ value, atMillis }))
  })
  return { handled, binding }
}

describe("a wall clock that is set while records wait", () => {
  for (const [name, maxBufferedRecords] of [
    ["all fetched", 50_000],
    ["most not fetched yet", 4]
  ] as const) {
    withWallClock(`RTY-09 ruling 13 back by an hour, ${name}: every record waits its delay once`, (set) =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const { handled, binding } = failingOnce({ maxBufferedRecords })
        set(2 * hour)
        yield* start(binding)
        for (let second = 0; second < 50; second++) {
          yield* append("orders", 0, [String(second)])
          yield* advance("1 second")
        }
        set(hour)
        for (let second = 50; second < 360; second++) yield* advance("1 second")
        assert.strictEqual(handled.length, 50)
        for (const { value, atMillis } of handled) {
          const due = 300_000 + Number(value) * 1_000
          assert.isAtLeast(atMillis, due)
          assert.isAtMost(atMillis, due + 1_000)
        }
      })
    )
  }

  withWallClock("RTY-09 ahead by an hour: records that are due by the clock are handled within a minute", (set) =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { handled, binding } = failingOnce()
      yield* start(binding)
      yield* publish("orders", ["a", "b"], () => "k")
      yield* advance("10 seconds")
      set(hour)
      yield* advance("60 seconds")
      assert.strictEqual(handled.length, 2)
    })
  )

  for (const [name, offMillis] of [
    ["back", -hour],
    ["ahead", hour]
  ] as const) {
    withWallClock(`CB-06 ${name}: an open breaker half-opens when its wait is over`, (set) =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        set(2 * hour)
        let isDown = true
        const calls: Array<string> = []
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            retry: RetryPolicy.none,
            circuitBreaker: { minimumNumberOfCalls: 1, slidingWindowSize: 1, waitDurationInOpenState: "30 seconds" },
            onError: { Down: Route.retry },
            handler: ({ value }) =>
              Effect.suspend(() => {
                calls.push(value)
                return isDown ? Effect.fail(new Down()) : Effect.void
              })
          })
        )
        yield* publish("orders", ["a", "b"], () => "k")
        yield* settle
        assert.deepStrictEqual(calls, ["a"])
        yield* advance("10 seconds")
        set(2 * hour + offMillis)
        isDown = false
        yield* advance("19 seconds")
        assert.deepStrictEqual(calls, ["a"])
        yield* advance("2 seconds")
        assert.deepStrictEqual(calls, ["a", "a", "b"])
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      })
    )

    withWallClock(`ruling 18 ${name}: a handler's budget and its later attempts are measured in real time`, (set) =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 3 })
        set(2 * hour)
        const attempts: Array<string> = []
        yield* start(
          Binding.make("orders", {
            ...orders,
            retry: RetryPolicy.blocking({
              maxAttempts: 3,
              initialBackoff: "20 seconds",
              maxBackoff: "20 seconds",
              jitter: 0
            }),
            maxPollRecords: 1,
            maxPollInterval: "10 minutes",
            onError: { Down: Route.retry },
            handler: ({ value }) =>
              Effect.gen(function* () {
                attempts.push(value)
                if (value === "hangs") return yield* Effect.never
                if (value === "behind") return yield* Effect.sleep("1 minute")
                if (value === "slow") return yield* Effect.sleep("3 minutes")
                if (attempts.filter((each) => each === value).length < 3) return yield* new Down()
              })
          })
        )
        for (const [partition, values] of [["hangs", "behind"], ["slow"], ["fails"]].entries())
          yield* append("orders", partition, values)
        yield* advance("10 seconds")
        set(2 * hour + offMillis)
        for (let second = 0; second < 10 * 60; second += 10) yield* advance("10 seconds")
        assert.deepStrictEqual(attempts.toSorted(), ["behind", "fails", "fails", "fails", "hangs", "slow"])
        const letters = yield* Effect.forEach([0, 1, 2], (partition) => valuesOf("orders.DLT", partition))
        assert.deepStrictEqual(letters.flat(), ["hangs"])
      })
    )
  }
})
