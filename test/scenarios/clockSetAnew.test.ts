import { assert, describe, it } from "@effect/vitest"
import { Binding, type BindingOptions, type Broker, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Data, Effect, type Scope } from "effect"
import { skewed } from "../outbox/skewedClock.ts"
import { advance, append, layer, orders, publish, settle, start, valuesOf } from "./bus.ts"

class Down extends Data.TaggedError("Down") {}

const hour = 3_600_000

/** As on a real machine: `currentTimeNanos` follows the wall clock, too. */
const off = (clock: Clock.Clock, offMillis: () => number): Clock.Clock =>
  new Proxy(skewed(clock, offMillis), {
    get: (target, key) =>
      key === "currentTimeNanosUnsafe"
        ? () => target.currentTimeNanosUnsafe() + BigInt(offMillis()) * 1_000_000n
        : Reflect.get(target, key)
  })

/** A test whose wall clock, the broker's too, can be set; monotonic time is the test clock's. */
const withWallClock = <E>(
  title: string,
  body: (
    set: (offMillis: number) => void
  ) => Effect.Effect<void, E, MemoryBroker.MemoryBroker | Broker.Broker | Scope.Scope>
): void =>
  it.effect(title, () =>
    Effect.gen(function* () {
      let offMillis = 0
      const clock = off(yield* Clock.Clock, () => offMillis)
      yield* body((millis) => (offMillis = millis)).pipe(
        Effect.provide(layer()),
        Effect.provideService(Clock.Clock, clock)
      )
    })
  )

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
    withWallClock(`RTY-09 ruling 13 back by an hour, ${name}: every record waits its delay, none twice`, (set) =>
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

  withWallClock("RTY-09 ahead by an hour: what is due by the clock is handled within a minute", (set) =>
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

    withWallClock(
      `ruling 18 ${name}: a handler's budget, and the attempts behind it, are measured in real time`,
      (set) =>
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
                initialInterval: "20 seconds",
                maxInterval: "20 seconds",
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
