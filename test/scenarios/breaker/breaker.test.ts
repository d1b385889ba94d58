import { assert, describe } from "@effect/vitest"
import { Binding, type BindingOptions, type CircuitBreaker, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, append, headersOf, now, orders, publish, scenario, settle, start, until, valuesOf } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}
class Invalid extends Data.TaggedError("Invalid") {}

interface Dependency {
  isDown: boolean
  readonly calls: Array<{ readonly atMillis: number; readonly value: string; readonly tier: number }>
  running: number
  mostAtOnce: number
}

/** A binding on `orders` that calls a dependency which fails while it is down, and takes `takes`. */
const dependent = (
  circuitBreaker: CircuitBreaker.Options,
  settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = {},
  takes: "0 millis" | "500 millis" = "0 millis"
) => {
  const dependency: Dependency = { isDown: false, calls: [], running: 0, mostAtOnce: 0 }
  const binding = Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["3 seconds"] }),
    circuitBreaker,
    ...settings,
    onError: { Down: Route.retry, Invalid: Route.deadLetter("invalid") },
    handler: ({ value, tier }) =>
      Effect.gen(function* () {
        dependency.calls.push({ atMillis: yield* now, value, tier })
        dependency.mostAtOnce = Math.max(dependency.mostAtOnce, ++dependency.running)
        yield* Effect.sleep(takes)
        if (value.startsWith("invalid")) return yield* new Invalid()
        if (dependency.isDown) return yield* new Down()
      }).pipe(Effect.ensuring(Effect.sync(() => dependency.running--)))
  })
  return { dependency, binding }
}

const values = (dependency: Dependency) => dependency.calls.map(({ value }) => value)
const three = { minimumNumberOfCalls: 3, slidingWindowSize: 3, waitDurationInOpenState: "30 seconds" } as const

describe("the circuit breaker of a binding (TST-06: breaker)", () => {
  scenario(
    "CB-04 CB-07 CB-08 C11 opens, pauses the binding, and holds every record where it is; no record is routed or skipped",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append(
          "orders",
          0,
          Array.from({ length: 50 }, (_, index) => `v${index}`)
        )
        const { dependency, binding } = dependent(three, { retry: RetryPolicy.none })
        dependency.isDown = true
        const app = yield* start(binding)
        // Two go to the dead letter topic before anything is known about the dependency; the third opens the breaker.
        assert.deepStrictEqual(values(dependency), ["v0", "v1", "v2"])
        assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
        assert.deepStrictEqual((yield* app.connector.listBindings)[0]?.pausedBy, ["breaker"])
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["v0", "v1"])
        yield* advance("29 seconds")
        assert.strictEqual(dependency.calls.length, 3)
        dependency.isDown = false
        yield* advance("1 second")
        assert.deepStrictEqual(
          values(dependency).slice(3),
          Array.from({ length: 48 }, (_, index) => `v${index + 2}`)
        )
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["v0", "v1"])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 50n)
        assert.deepStrictEqual(
          app.of("BreakerChanged").map(({ to }) => to),
          ["OPEN", "HALF_OPEN", "CLOSED"]
        )
      })
  )

  scenario(
    "CB-15 CB-10 ruling 10 a dependency is down for two hours: nothing is published, membership and order are kept",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const { dependency, binding } = dependent(
          { ...three, minimumNumberOfCalls: 1, slidingWindowSize: 1, permittedNumberOfCallsInHalfOpenState: 1 },
          { retry: RetryPolicy.none, orderingMode: "STRICT", onExhausted: "halt" }
        )
        const app = yield* start(binding)
        yield* publish("orders", ["a", "b", "c"], () => "k")
        dependency.isDown = true
        yield* settle
        const before = app.of("PartitionAssigned").length
        yield* publish("orders", ["d", "e", "f", "g", "h", "i"], () => "k")
        yield* Effect.repeat(advance("1 minute"), { times: 119 })
        assert.deepStrictEqual(yield* valuesOf("orders.DLT").pipe(Effect.catchCause(() => Effect.succeed([]))), [])
        dependency.isDown = false
        yield* advance("1 minute")
        const finished = app.of("Settled").filter(({ settlement }) => settlement === "Handled")
        assert.deepStrictEqual(
          finished.map(({ record }) => record.offset),
          [0n, 1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n]
        )
        assert.strictEqual(app.of("PartitionAssigned").length, before)
        assert.strictEqual((yield* memory.group("billing")).members.length, 1)
      })
  )

  scenario(
    "CB-08 ruling 28 a record that waits between two attempts when the breaker opens has all its attempts again afterwards",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            processingOrder: "key",
            retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "2 seconds", jitter: 0 }),
            circuitBreaker: { minimumNumberOfCalls: 1, slidingWindowSize: 1, waitDurationInOpenState: "10 seconds" },
            onError: { Down: Route.retry },
            handler: ({ value }) =>
              Effect.andThen(Effect.sleep(value === "slow" ? "1 second" : 0), Effect.fail(new Down()))
          })
        )
        yield* append("orders", 0, ["quick", "slow"])
        // The quick one opens it at its second attempt, a second before that of the slow one.
        yield* advance("4 seconds")
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
        yield* advance("10 seconds")
        const ofSlow = app.of("AttemptFailed").filter(({ record }) => record.offset === 1n)
        assert.deepStrictEqual(
          ofSlow.map(({ attempt }) => attempt),
          [1, 1]
        )
      })
  )

  scenario("CB-02 REB-03 a call that the processing budget cuts off is a failure of the dependency", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          maxPollInterval: "10 seconds",
          maxPollRecords: 1,
          retry: RetryPolicy.none,
          circuitBreaker: { minimumNumberOfCalls: 1, slidingWindowSize: 1 },
          handler: () => Effect.never
        })
      )
      yield* append("orders", 0, ["hangs"])
      yield* advance("7 seconds")
      yield* advance("1 second")
      assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
    })
  )

  scenario("CB-03 CB-09 C07 ruling 27 half-open permits are a hard cap over all partitions, consumers and tiers", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 12 })
      for (let partition = 0; partition < 12; partition++) yield* append("orders", partition, ["1", "2", "3", "4", "5"])
      const { dependency, binding } = dependent(
        { ...three, permittedNumberOfCallsInHalfOpenState: 1 },
        { concurrency: 3 },
        "500 millis"
      )
      dependency.isDown = true
      const app = yield* start(binding)
      yield* advance("1 second")
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      const before = dependency.calls.length
      dependency.mostAtOnce = 0
      yield* advance("30 seconds")
      yield* advance("400 millis")
      assert.strictEqual(dependency.calls.length, before + 1)
      yield* advance("29 seconds")
      assert.strictEqual(dependency.calls.length, before + 1)
      yield* advance("2 seconds")
      assert.strictEqual(dependency.calls.length, before + 2)
      assert.strictEqual(dependency.mostAtOnce, 1)
      dependency.isDown = false
      yield* until(
        () => app.of("Settled").filter(({ settlement }) => settlement === "Handled").length >= 60,
        "5 seconds"
      )
    })
  )

  scenario("CB-14 C01 LIF-04 LIF-05 the breaker never lifts an operator's pause, nor the operator the breaker's", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { dependency, binding } = dependent({ ...three, minimumNumberOfCalls: 2, slidingWindowSize: 2 })
      dependency.isDown = true
      const app = yield* start(binding)
      yield* publish("orders", ["m1", "m2", "m3"])
      yield* settle
      assert.strictEqual(dependency.calls.length, 2)
      const refusal = yield* Effect.flip(app.connector.resume("orders"))
      assert.include(refusal.message, "breaker")
      yield* app.connector.pause("orders")
      dependency.isDown = false
      yield* advance("10 minutes")
      assert.strictEqual(dependency.calls.length, 2)
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      yield* app.connector.resume("orders")
      yield* settle
      assert.includeMembers(values(dependency).slice(2), ["m2", "m3"])
    })
  )

  scenario("CB-12 ruling 29 permanent errors do not count as failures of the dependency", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { binding } = dependent(three)
      const app = yield* start(binding)
      yield* publish(
        "orders",
        Array.from({ length: 20 }, (_, index) => `invalid-${index}`)
      )
      yield* settle
      assert.strictEqual(app.of("BreakerChanged").length, 0)
      assert.strictEqual((yield* valuesOf("orders.DLT")).length, 20)
      assert.strictEqual(headersOf((yield* memory.log("orders.DLT", 0))[0]).get("x-eventbus-dlt-detail"), "invalid")
    })
  )

  scenario("CB-11 a record that cannot be read, a skip and a stop give the permit of a half-open breaker back", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { dependency, binding } = dependent(
        { ...three, permittedNumberOfCallsInHalfOpenState: 1 },
        { retry: RetryPolicy.none }
      )
      dependency.isDown = true
      const app = yield* start(binding)
      yield* publish("orders", ["a", "b", "c"], () => "k")
      yield* settle
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      dependency.isDown = false
      yield* memory.append("orders", 0, [{ key: null, value: null }])
      yield* publish("orders", ["invalid", "good"], () => "k")
      yield* advance("30 seconds")
      assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "CLOSED")
      assert.include(values(dependency), "good")
    })
  )

  scenario(
    "CB-13 automaticPauseOnOpen false: the binding does not show PAUSED, and nothing is handled while the breaker is open",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const { dependency, binding } = dependent(
          { ...three, automaticPauseOnOpen: false },
          { retry: RetryPolicy.none }
        )
        dependency.isDown = true
        const app = yield* start(binding)
        yield* publish("orders", ["a", "b", "c", "d"], () => "k")
        // The breaker opens at the third failure, which comes behind the copies of the first two.
        yield* settle
        yield* advance("10 seconds")
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
        assert.deepStrictEqual(values(dependency), ["a", "b", "c"])
        dependency.isDown = false
        yield* advance("20 seconds")
        assert.deepStrictEqual(values(dependency), ["a", "b", "c", "c", "d"])
        yield* app.close
      })
  )

  scenario("CB-02 CB-08 RTY-24 attempts in place stop when the breaker opens; it sees one outcome per delivery", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 4 })
      const { dependency, binding } = dependent(three, {
        retry: RetryPolicy.blocking({ maxAttempts: 5, initialBackoff: "1 second", multiplier: 1, jitter: 0 })
      })
      dependency.isDown = true
      const app = yield* start(binding)
      for (let partition = 0; partition < 3; partition++) yield* append("orders", partition, [`p${partition}`])
      yield* advance("500 millis")
      yield* append("orders", 3, ["late"])
      yield* advance("3500 millis")
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      // Three deliveries of five attempts opened it; the fourth stops in the middle of its own.
      const attempts = values(dependency).filter((value) => value === "late").length
      assert.strictEqual(attempts, 4)
      yield* advance("20 seconds")
      assert.strictEqual(values(dependency).filter((value) => value === "late").length, attempts)
      dependency.isDown = false
      yield* advance("10 seconds")
      assert.strictEqual(app.of("Settled").filter(({ settlement }) => settlement === "Handled").length, 2)
    })
  )

  scenario("LIF-11 a binding that is stopped while the breaker is open stops at once, and starts held", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { dependency, binding } = dependent(three, { retry: RetryPolicy.none })
      dependency.isDown = true
      const app = yield* start(binding)
      yield* publish("orders", ["a", "b", "c", "d"], () => "k")
      yield* settle
      const before = yield* now
      yield* app.connector.stop("orders")
      assert.strictEqual((yield* now) - before, 0)
      yield* app.connector.start("orders")
      yield* settle
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      dependency.isDown = false
      yield* advance("30 seconds")
      assert.deepStrictEqual(values(dependency), ["a", "b", "c", "c", "d"])
    })
  )
})
