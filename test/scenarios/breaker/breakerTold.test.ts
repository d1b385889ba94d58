import { assert, describe } from "@effect/vitest"
import { Binding, CurrentTransaction, EventBusError, RetryPolicy, Route } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { type App, advance, append, bytes, orders, scenario, start, until } from "../bus.ts"
import { Down } from "../kinds.ts"

const circuitBreaker = {
  minimumNumberOfCalls: 1,
  slidingWindowSize: 1,
  permittedNumberOfCallsInHalfOpenState: 1,
  waitDurationInOpenState: "20 seconds",
  slowCallDuration: "1 hour"
} as const

const pass = Effect.fnUntraced(function* (seconds: number) {
  for (let second = 0; second < seconds; second++) yield* advance("1 second")
})

const states = (app: App) => app.of("BreakerChanged").map(({ to }) => to)

describe("outcomes that the circuit breaker counts", () => {
  scenario("rulings 16, 27: a batch that waits for a slot when its partition is given up is not a failed call", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      const handleBatch = () => Effect.sleep("10 seconds")
      const retry = RetryPolicy.none
      const app = yield* start(
        Binding.makeBatch("orders", { ...orders, maxInFlight: 1, circuitBreaker, retry, handleBatch })
      )
      yield* append("orders", 0, ["a"])
      yield* append("orders", 1, ["b"])
      yield* advance("1 second")
      // Another member takes one of both partitions over.
      const other = yield* start(Binding.make("orders", { ...orders, handler: () => Effect.void }))
      yield* pass(60)
      assert.strictEqual(app.of("Settled").length + other.of("Settled").length, 2)
      assert.deepStrictEqual(states(app), [])
    })
  )

  scenario("ruling 16: a batch whose handler interrupts itself is not a failed call, and is delivered again", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 1 })
      let calls = 0
      const handleBatch = () => Effect.suspend(() => (calls++ === 0 ? Effect.interrupt : Effect.void))
      const retry = RetryPolicy.none
      const app = yield* start(Binding.makeBatch("orders", { ...orders, circuitBreaker, retry, handleBatch }))
      yield* append("orders", 0, ["a", "b"])
      yield* pass(3)
      assert.strictEqual(calls, 2)
      assert.deepStrictEqual(
        app.of("Settled").map(({ settlement }) => settlement),
        ["Handled", "Handled"]
      )
      assert.deepStrictEqual(states(app), [])
    })
  )

  for (const [failing, opens] of [
    [1, []],
    [5, ["OPEN"]]
  ] as const)
    scenario(`CB-04 ruling 26: ${failing} failing records in each batch of ten, at a threshold of 50 %`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 1 })
        const app = yield* start(
          Binding.makeBatch("orders", {
            ...orders,
            maxPollRecords: 10,
            circuitBreaker: { minimumNumberOfCalls: 10, slidingWindowSize: 100, failureRateThreshold: 50 },
            retry: RetryPolicy.none,
            onError: { Down: Route.retry },
            handleBatch: ({ deliveries }) => {
              const [first, ...others] = deliveries.flatMap(({ value }, index) =>
                value === "bad" ? [{ index, error: new Down() }] : []
              )
              return first === undefined
                ? Effect.void
                : Effect.fail(EventBusError.BatchProcessing.these([first, ...others]))
            }
          })
        )
        const values = Array.from({ length: 10 }, (_, index) => (index < failing ? "bad" : "good"))
        for (let batch = 0; batch < 10; batch++) {
          yield* append("orders", 0, values)
          yield* advance("1 second")
        }
        assert.deepStrictEqual(states(app), [...opens])
      })
    )

  scenario(
    "CB-10 rulings 18, 27: a trial call that the budget cuts off counts as a failure, also when the broker takes a second to abort its transaction",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        yield* memory.createTopic("out")
        let hangs = false
        const handler = () =>
          Effect.gen(function* () {
            yield* Effect.orDie(CurrentTransaction.send({ topic: "out", key: null, value: bytes("x") }))
            return hangs ? yield* Effect.never : yield* new Down()
          })
        const app = yield* start(
          Binding.makeTransactional("orders", {
            ...orders,
            maxPollInterval: "1 minute",
            maxPollRecords: 1,
            circuitBreaker,
            retry: RetryPolicy.none,
            onError: { Down: Route.retry },
            handler
          })
        )
        yield* append("orders", 0, ["a"])
        yield* append("orders", 1, ["b"])
        yield* until(() => states(app).at(-1) === "OPEN", "1 second")
        hangs = true
        yield* until(() => states(app).at(-1) === "HALF_OPEN", "1 second")
        yield* pass(600)
        const reopened = app.of("BreakerChanged").filter(({ from, to }) => from === "HALF_OPEN" && to === "OPEN")
        assert.isAtLeast(reopened.length, 5)
      }),
    {
      faults: FaultPlan.make([
        FaultPlan.chance(1, { operation: "endTransaction" }, { _tag: "Delay", duration: "1 second" })
      ])
    }
  )

  scenario("a probe that hangs and cannot be interrupted fails at its timeout", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      let isDown = true
      let asked = 0
      const probe = Effect.suspend(() => (++asked === 1 ? Effect.uninterruptible(Effect.never) : Effect.void))
      const binding = Binding.make("orders", {
        ...orders,
        circuitBreaker: { ...circuitBreaker, probe },
        retry: RetryPolicy.none,
        onError: { Down: Route.retry },
        handler: () => (isDown ? Effect.fail(new Down()) : Effect.void)
      })
      const app = yield* start(binding)
      yield* append("orders", 0, ["a"])
      yield* advance("1 second")
      isDown = false
      yield* pass(60)
      assert.deepStrictEqual(states(app), ["OPEN", "HALF_OPEN", "CLOSED"])
      assert.strictEqual(asked, 2)
    })
  )

  scenario(
    "CB-05: the time in which a partition waits for a copy, as far ahead of it as it may be, is part of no call",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 1 })
        const binding = Binding.make("orders", {
          ...orders,
          ackMode: "MANUAL",
          circuitBreaker: { slidingWindowSize: 20, slowCallDuration: "1 second", slowCallRateThreshold: 1 },
          retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 hour" }] }),
          onError: { Down: Route.retry },
          handler: ({ value }) => (value === "bad" ? Effect.fail(new Down()) : Effect.void)
        })
        const app = yield* start(binding)
        // A short chunk first: the partition gets 10,000 records ahead in the middle of another.
        yield* append("orders", 0, ["bad", ...Array.from({ length: 100 }, () => "good")])
        yield* advance("1 second")
        yield* append(
          "orders",
          0,
          Array.from({ length: 10_000 }, () => "good")
        )
        yield* pass(15)
        assert.strictEqual(app.of("Settled").length, 9_999)
        yield* pass(30)
        assert.strictEqual(app.of("Settled").length, 10_101)
        assert.deepStrictEqual(states(app), [])
      }),
    {
      faults: FaultPlan.make([
        FaultPlan.chance(
          1,
          { operation: "produce", topic: "orders.retry-1" },
          { _tag: "Delay", duration: "20 seconds" }
        )
      ])
    }
  )

  scenario("rulings 27, 28: the function of a transactional handler is only called with a slot and a permit", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 4 })
      const open = new Set<string>()
      let most = 0
      let calls = 0
      const binding = Binding.makeTransactional("orders", {
        ...orders,
        maxInFlight: 1,
        circuitBreaker: { ...circuitBreaker, waitDurationInOpenState: "1 hour" },
        retry: RetryPolicy.none,
        handler: ({ value }) => {
          calls++
          if (value === "bad") throw new Error("down")
          open.add(value)
          most = Math.max(most, open.size)
          return Effect.map(Effect.sleep("1 second"), () => open.delete(value))
        }
      })
      const app = yield* start(binding)
      for (let partition = 0; partition < 4; partition++)
        yield* append(
          "orders",
          partition,
          [1, 2, 3].map((number) => `${partition}/${number}`)
        )
      yield* pass(20)
      assert.deepStrictEqual([calls, most], [12, 1])
      for (let partition = 0; partition < 4; partition++) yield* append("orders", partition, ["bad", "bad"])
      yield* pass(60)
      assert.deepStrictEqual(states(app), ["OPEN"])
      assert.strictEqual(calls, 13)
    })
  )
})
