/**
 * The trial calls of a half-open breaker, and the way of a record whose trial fails (ruling 72).
 */
import { assert, describe } from "@effect/vitest"
import { Binding, type CircuitBreaker, Health, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, start, valuesOf } from "../bus.ts"
import { Down, Invalid, kinds } from "../kinds.ts"

const circuitBreaker = {
  minimumNumberOfCalls: 1,
  slidingWindowSize: 1,
  permittedNumberOfCallsInHalfOpenState: 2,
  waitDurationInOpenState: "30 seconds"
} as const

const dependent = (
  breaker: CircuitBreaker.Options,
  fails: (value: string) => Down | Invalid | undefined,
  calls: Array<string> = []
) =>
  Binding.make("orders", {
    ...orders,
    circuitBreaker: breaker,
    retry: RetryPolicy.blocking({ maxAttempts: 3, initialBackoff: "100 millis" }),
    onError: { Down: Route.retry, Invalid: Route.deadLetter() },
    handler: ({ value }) =>
      Effect.suspend(() => {
        calls.push(value)
        const error = fails(value)
        return error === undefined ? Effect.void : Effect.fail(error)
      })
  })

const topic = Effect.fnUntraced(function* (partitions: number) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions })
  return memory
})

const deadLetters = (app: { readonly of: (tag: "Settled") => ReadonlyArray<{ readonly settlement: string }> }) =>
  app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered").length

describe("trial calls", () => {
  scenario("ruling 72 the only candidate stays where it is, and health names it", () =>
    Effect.gen(function* () {
      yield* topic(1)
      const calls: Array<string> = []
      const app = yield* start(dependent(circuitBreaker, () => new Down(), calls))
      yield* append("orders", 0, ["a", "b"])
      yield* advance("1 second")
      assert.strictEqual(calls.length, 3)
      for (let minute = 0; minute < 120; minute++) yield* advance("1 minute")
      // One call without attempts in place for each half-open state.
      const halfOpen = app.of("BreakerChanged").filter(({ to }) => to === "HALF_OPEN").length
      assert.isAtLeast(halfOpen, 200)
      assert.isAtMost(calls.length, 3 + halfOpen)
      assert.strictEqual(deadLetters(app), 0)
      const [reason] = (yield* app.connector.health).reasons
      assert.strictEqual(reason?._tag, "BreakerOpen")
      if (reason?._tag !== "BreakerOpen") return
      const { topic: name, partition, offset, sinceMillis } = reason.onlyCandidate!
      assert.deepStrictEqual([name, partition, offset], ["orders", 0, 0n])
      assert.approximately(sinceMillis, 30_500, 500)
      assert.include(Health.describe(reason!), "orders-0 at offset 0")
    })
  )

  scenario("ruling 72 giveUpAfter bounds the only candidate by time", () =>
    Effect.gen(function* () {
      yield* topic(1)
      const app = yield* start(
        dependent({ ...circuitBreaker, giveUpAfter: "10 minutes" }, (value) =>
          value === "poison" ? new Down() : undefined
        )
      )
      yield* append("orders", 0, ["poison", "b"])
      for (let minute = 0; minute < 9; minute++) yield* advance("1 minute")
      assert.strictEqual(deadLetters(app), 0)
      for (let minute = 0; minute < 4; minute++) yield* advance("1 minute")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["poison"])
      assert.strictEqual((yield* app.connector.health).status, "UP")
    })
  )

  scenario("ruling 72 giveUpAfter uses up nothing while there are other records to try", () =>
    Effect.gen(function* () {
      yield* topic(3)
      const app = yield* start(dependent({ ...circuitBreaker, giveUpAfter: "2 minutes" }, () => new Down()))
      for (const partition of [0, 1, 2]) yield* append("orders", partition, ["a"])
      for (let minute = 0; minute < 60; minute++) yield* advance("1 minute")
      assert.strictEqual(deadLetters(app), 0)
    })
  )

  scenario("ruling 72 a record that fails in maxAttempts windows in which others succeed takes its route", () =>
    Effect.gen(function* () {
      yield* topic(2)
      const calls: Array<string> = []
      // Of two trial calls one fails: the breaker reopens each time.
      const app = yield* start(
        dependent(circuitBreaker, (value) => (value === "poison" ? new Down() : undefined), calls)
      )
      yield* append("orders", 0, ["poison", "x"])
      yield* advance("1 second")
      for (let round = 0; round < 12; round++) {
        yield* append("orders", 1, [`good-${round}`])
        yield* advance("31 seconds")
      }
      assert.strictEqual(deadLetters(app), 1)
      assert.isAtMost(calls.filter((value) => value === "poison").length, 12)
      assert.isAtLeast(app.of("BreakerChanged").length, 3)
    })
  )

  scenario("ruling 72 ruling 29 a trial that fails with an error that does not count takes its route", () =>
    Effect.gen(function* () {
      yield* topic(1)
      let isDown = true
      const app = yield* start(
        dependent(circuitBreaker, (value) => (isDown ? new Down() : value === "bad" ? new Invalid() : undefined))
      )
      yield* append("orders", 0, ["bad", "good"])
      yield* advance("1 second")
      isDown = false
      yield* advance("31 seconds")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad"])
      assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "CLOSED")
    })
  )

  scenario("ruling 72 a half-open breaker with nothing to try is not degraded", () =>
    Effect.gen(function* () {
      yield* topic(1)
      let isDown = true
      const app = yield* start(
        dependent({ ...circuitBreaker, automaticPauseOnOpen: false }, () => (isDown ? new Down() : undefined))
      )
      yield* append("orders", 0, ["a"])
      yield* advance("1 second")
      assert.strictEqual((yield* app.connector.health).status, "DEGRADED")
      // The record that opened the breaker is moved out of the way.
      yield* app.connector.pause("orders")
      yield* advance("1 minute")
      assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "HALF_OPEN")
      assert.deepStrictEqual(
        (yield* app.connector.health).reasons.map(({ _tag }) => _tag),
        ["Paused"]
      )
      isDown = false
      yield* app.connector.resume("orders")
      yield* advance("1 second")
      assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "CLOSED")
      assert.strictEqual((yield* app.connector.health).status, "UP")
    })
  )

  for (const [kind, bindingOf] of Object.entries(kinds)) {
    scenario(`ruling 72 ${kind}: the trial is for one record alone, and each record is tried once`, () =>
      Effect.gen(function* () {
        const memory = yield* topic(3)
        yield* memory.createTopic("out")
        const windows = new Map<number, Array<string>>()
        const halfOpen = () => app.of("BreakerChanged").filter(({ to }) => to === "HALF_OPEN").length
        const app = yield* start(
          bindingOf({
            circuitBreaker: { ...circuitBreaker, permittedNumberOfCallsInHalfOpenState: 9 },
            value: Serde.nullable(Serde.string),
            handle: ({ value }) =>
              Effect.suspend(() => {
                if (halfOpen() > 0) windows.set(halfOpen(), [...(windows.get(halfOpen()) ?? []), value!])
                return Effect.fail(new Down())
              })
          })
        )
        for (const partition of [0, 1, 2]) {
          const values = Array.from({ length: 4 }, (_, index) => `${partition}-${index}`)
          yield* append("orders", partition, values)
        }
        for (let second = 0; second < 130; second++) yield* advance("1 second")
        assert.isAtLeast(windows.size, 3)
        // Side by side each record is a candidate, by key each key is: the four records of a partition have four keys.
        const candidates = kind === "unordered" || kind === "by key" ? 9 : 3
        for (const values of windows.values()) {
          assert.strictEqual(new Set(values).size, values.length, values.join())
          assert.strictEqual(values.length, candidates, values.join())
        }
      })
    )
  }
})
