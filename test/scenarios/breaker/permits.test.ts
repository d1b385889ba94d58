import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, publish, scenario, start, until } from "../bus.ts"
import { Down, Invalid } from "../kinds.ts"

/** A breaker with one trial call, that two failures open for 20 seconds. */
const circuitBreaker = {
  minimumNumberOfCalls: 2,
  slidingWindowSize: 2,
  permittedNumberOfCallsInHalfOpenState: 1,
  waitDurationInOpenState: "20 seconds"
} as const

const retry = RetryPolicy.tiered({
  blocking: { maxAttempts: 2, initialBackoff: "5 seconds", maxBackoff: "5 seconds", jitter: 0 },
  tiers: ["10 seconds"]
})

/** Calls of a handler whose dependency is down until somebody says otherwise. */
const dependency = () => {
  const state = { isDown: true, calls: [] as Array<string> }
  const handler = ({ value }: { readonly value: string }) =>
    Effect.suspend(() => {
      state.calls.push(value)
      return state.isDown ? Effect.fail(new Down()) : Effect.void
    })
  return { state, handler }
}

describe("the permit of a trial call between two of its attempts", () => {
  for (const [name, settings, topic] of [
    ["maxInFlight 1", { processingOrder: "key", maxInFlight: 1 }, "orders"],
    ["a tier's concurrency 1", {}, "orders.retry-1"]
  ] as const) {
    scenario(`CB-11 ruling 27 ${name}: the holder of a slot and the holder of a permit never wait for each other`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        for (const each of ["orders", "orders.retry-1"]) yield* memory.createTopic(each, { partitions: 3 })
        const { state, handler } = dependency()
        yield* append(topic, 0, ["a"])
        yield* append(topic, 1, ["b"])
        yield* append(topic, 2, ["c"])
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            ...settings,
            circuitBreaker,
            retry,
            onError: { Down: Route.retry },
            handler
          })
        )
        yield* until(() => app.of("BreakerChanged").at(-1)?.to === "HALF_OPEN", "1 second")
        const calls = state.calls.length
        state.isDown = false
        const finished = () => app.of("Settled").filter(({ settlement }) => settlement === "Handled").length
        yield* until(() => finished() === 3, "1 second")
        assert.isAtLeast(calls, 5)
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "CLOSED")
      })
    )
  }

  scenario("CB-11 ruling 29 a trial call that does not count gives its permit to a waiting record", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 3 })
      let isDown = true
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          circuitBreaker: { ...circuitBreaker, automaticPauseOnOpen: false },
          retry: RetryPolicy.none,
          onError: { Down: Route.retry, Invalid: Route.deadLetter() },
          handler: ({ value }): Effect.Effect<void, Down | Invalid> =>
            Effect.andThen(
              Effect.sleep("1 second"),
              Effect.suspend(
                (): Effect.Effect<void, Down | Invalid> =>
                  isDown ? Effect.fail(new Down()) : value === "a" ? Effect.fail(new Invalid()) : Effect.void
              )
            )
        })
      )
      // The first failure is dead-lettered, the second opens the breaker, the third finds it open.
      for (const [partition, value] of ["x", "a", "b"].entries()) yield* append("orders", partition, [value])
      yield* until(() => app.of("BreakerChanged").at(-1)?.to === "OPEN", "1 second")
      isDown = false
      for (let second = 0; second < 30; second++) yield* advance("1 second")
      const settled = app.of("Settled").filter(({ settlement }) => settlement !== "HeldByBreaker")
      assert.deepStrictEqual(
        settled.map(({ settlement, partition }) => `${settlement} ${partition}`),
        ["DeadLettered 0", "DeadLettered 1", "Handled 2"]
      )
    })
  )

  scenario("CB-11 ruling 27 while a record's tier is paused, other records make the trial calls", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      for (const each of ["orders", "orders.retry-1"]) yield* memory.createTopic(each)
      const { state, handler } = dependency()
      yield* append("orders.retry-1", 0, ["tier-1", "tier-2"])
      const app = yield* start(
        Binding.make("orders", { ...orders, circuitBreaker, retry, onError: { Down: Route.retry }, handler })
      )
      yield* until(() => app.of("BreakerChanged").at(-1)?.to === "HALF_OPEN", "1 second")
      const trial = app.of("AttemptFailed").at(-1)
      assert.strictEqual(trial?.topic, "orders.retry-1")
      yield* app.connector.pause("orders", { tier: 1 })
      state.isDown = false
      yield* publish("orders", ["main"])
      yield* advance("10 seconds")
      assert.deepStrictEqual(state.calls.slice(-1), ["main"])
      assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "CLOSED")
      yield* app.connector.resume("orders", { tier: 1 })
      yield* advance("20 seconds")
      const finished = app.of("Settled").filter(({ settlement }) => settlement === "Handled")
      assert.strictEqual(finished.length, 3)
    })
  )
})
