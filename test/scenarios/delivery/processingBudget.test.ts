import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Effect } from "effect"
import { type App, advance, append, orders, scenario, start } from "../bus.ts"
import { Down } from "../kinds.ts"
import { withWallClock } from "../wallClock.ts"

const hour = 3_600_000

/** A budget of 420 s. */
const budget = { ...orders, maxPollRecords: 1, maxPollInterval: "10 minutes", onError: { Down: Route.retry } } as const

const topic = Effect.flatMap(MemoryBroker.MemoryBroker, (memory) => memory.createTopic("orders", { partitions: 1 }))

const settlements = (app: App) => app.of("Settled").map(({ settlement, attempts }) => `${settlement} ${attempts}`)

const pass = Effect.fnUntraced(function* (seconds: number) {
  for (let second = 0; second < seconds; second += 5) yield* advance("5 seconds")
})

describe("the processing budget (ruling 18)", () => {
  scenario("REB-03 a later attempt that never ends is cut off when the budget of its delivery is exhausted", () =>
    Effect.gen(function* () {
      yield* topic
      let calls = 0
      let cutOffMillis = -1
      const handler = () =>
        ++calls === 1
          ? Effect.andThen(Effect.sleep("200 seconds"), Effect.fail(new Down()))
          : Effect.onInterrupt(Effect.never, () =>
              Effect.map(Clock.currentTimeMillis, (at) => {
                cutOffMillis = at
              })
            )
      const interval = "40 seconds"
      const blocking = { maxAttempts: 2, initialBackoff: interval, maxBackoff: interval, jitter: 0 } as const
      yield* start(Binding.make("orders", { ...budget, retry: RetryPolicy.blocking(blocking), handler }))
      yield* pass(200)
      yield* append("orders", 0, ["a"])
      yield* pass(1_500)
      assert.strictEqual(cutOffMillis, 620_000)
    })
  )

  scenario("the attempts of a whole batch have one budget: then its records are handled one by one", () =>
    Effect.gen(function* () {
      yield* topic
      let callsAsWhole = 0
      const binding = Binding.makeBatch("orders", {
        ...budget,
        maxPollRecords: 2,
        retry: RetryPolicy.blocking({ maxAttempts: 3, initialBackoff: "1 second", jitter: 0 }),
        handleBatch: ({ deliveries }) => {
          if (deliveries.length === 1) return Effect.void
          callsAsWhole++
          return Effect.andThen(Effect.sleep("300 seconds"), Effect.fail(new Down()))
        }
      })
      const app = yield* start(binding)
      yield* append("orders", 0, ["a", "b"])
      yield* pass(421)
      assert.strictEqual(callsAsWhole, 2)
      assert.deepStrictEqual(settlements(app), ["Handled 1", "Handled 1"])
    })
  )

  for (const kind of [{}, { processingOrder: "key" }, { listenerType: "BATCH" }] as const)
    withWallClock(
      `${JSON.stringify(kind)} a handler that begins after the clock was set back is not cut off early`,
      (set) =>
        Effect.gen(function* () {
          yield* topic
          set(2 * hour)
          const handler = () => Effect.sleep("30 seconds")
          const app = yield* start(Binding.make("orders", { ...budget, ...kind, retry: RetryPolicy.none, handler }))
          yield* pass(10)
          set(hour)
          yield* pass(400)
          yield* append("orders", 0, ["healthy"])
          yield* pass(60)
          assert.deepStrictEqual(settlements(app), ["Handled 1"])
        })
    )

  withWallClock("a handler that begins after the clock was set ahead, and never ends, is cut off", (set) =>
    Effect.gen(function* () {
      yield* topic
      const handler = ({ value }: { readonly value: string }) => (value === "hangs" ? Effect.never : Effect.void)
      const app = yield* start(Binding.make("orders", { ...budget, retry: RetryPolicy.none, handler }))
      yield* pass(10)
      set(hour)
      yield* pass(90)
      yield* append("orders", 0, ["hangs", "behind"])
      yield* pass(425)
      assert.deepStrictEqual(settlements(app).toSorted(), ["DeadLettered 1", "Handled 1"])
    })
  )

  withWallClock("a handler during which the clock is set ahead, and that then fails, has its attempts", (set) =>
    Effect.gen(function* () {
      yield* topic
      let calls = 0
      const handler = () =>
        Effect.flatMap(Effect.sleep("10 seconds"), () => (++calls < 3 ? Effect.fail(new Down()) : Effect.void))
      const retry = RetryPolicy.blocking({ maxAttempts: 3 })
      const app = yield* start(Binding.make("orders", { ...budget, retry, handler }))
      yield* append("orders", 0, ["a"])
      yield* pass(5)
      set(hour)
      yield* pass(100)
      assert.deepStrictEqual(settlements(app), ["Handled 3"])
    })
  )
})

describe("the circuit breaker (ruling 59)", () => {
  withWallClock("CB-05 calls during which the clock is set ahead do not count as slow", (set) =>
    Effect.gen(function* () {
      yield* topic
      const handler = () => Effect.sleep("2 seconds")
      const binding = Binding.make("orders", {
        ...orders,
        processingOrder: "unordered",
        circuitBreaker: {},
        retry: RetryPolicy.none,
        handler
      })
      const app = yield* start(binding)
      const values = Array.from({ length: 16 }, (_, index) => String(index))
      yield* append("orders", 0, values)
      yield* advance("1 second")
      set(10_000)
      yield* pass(10)
      assert.strictEqual(app.of("Settled").length, values.length)
      assert.deepStrictEqual(app.of("BreakerChanged"), [])
    })
  )
})
