/**
 * An open circuit breaker holds records back, and must not delay anything else.
 */
import { assert, describe } from "@effect/vitest"
import { Binding, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, inTime, now, orders, scenario, start, until, valuesOf } from "../bus.ts"
import * as Kinds from "../kinds.ts"

class Down extends Schema.TaggedError<Down>()("Down", {}) {}
class Invalid extends Schema.TaggedError<Invalid>()("Invalid", {}) {}

/** Opens with the first failed or slow call, for half a minute. */
const circuitBreaker = {
  minimumNumberOfCalls: 1,
  slidingWindowSize: 1,
  slowCallDuration: "1 second",
  permittedNumberOfCallsInHalfOpenState: 1,
  waitDurationInOpenState: "30 seconds"
} as const

const onError = { Down: Route.nextTier, Invalid: Route.deadLetter() }

const readable = Serde.make<string>({
  name: "readable",
  encode: (value) => new TextEncoder().encode(value),
  decode: (bytes) => {
    const value = new TextDecoder().decode(bytes)
    if (value === "?") throw new Error("unreadable")
    return value
  }
})

const cluster = Effect.fnUntraced(function* (...values: ReadonlyArray<string>) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("out")
  yield* append("orders", 0, values)
  return memory
})

/** Slow once, so that the breaker opens behind it. */
const slow = (value: string) => Effect.sleep(value === "slow" ? "2 seconds" : 0)

const withUnreadable: ReadonlyArray<readonly [string, Binding.Binding<never>]> = [
  [
    "one by one",
    Binding.make("orders", { ...orders, value: readable, circuitBreaker, handler: (at) => slow(at.value) })
  ],
  [
    "side by side",
    Binding.make("orders", {
      ...{ ...orders, value: readable, circuitBreaker, processingOrder: "unordered", maxInFlight: 1 },
      handler: (at) => slow(at.value)
    })
  ],
  [
    "whole batches",
    Binding.makeBatch("orders", {
      ...{ ...orders, value: readable, circuitBreaker },
      handleBatch: ({ deliveries }) => Effect.forEach(deliveries, (at) => slow(at.value))
    })
  ],
  [
    "transactions",
    Binding.makeTransactional("orders", {
      ...{ ...orders, value: readable, circuitBreaker },
      handler: (at) => slow(at.value)
    })
  ]
]

describe("an open circuit breaker", () => {
  for (const automaticPauseOnOpen of [true, false]) {
    for (const [kind, binding] of withUnreadable) {
      const definition = { ...binding.definition, circuitBreaker: { ...circuitBreaker, automaticPauseOnOpen } }
      scenario(
        `ruling 28 ${kind}, automatic pause ${automaticPauseOnOpen}: a record that cannot be read also waits`,
        () =>
          Effect.gen(function* () {
            const memory = yield* cluster("slow", "?")
            const app = yield* start({ ...binding, definition })
            yield* until(() => app.of("BreakerChanged").some(({ to }) => to === "OPEN"), "1 second")
            yield* advance("20 seconds")
            assert.strictEqual(yield* memory.partitionCount("orders.DLT"), 0)
            yield* until(() => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"), "5 seconds")
            assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["?"])
          })
      )
    }
  }

  // A failure in a transaction opens the breaker later, when the transaction is aborted.
  const { transactional, ...atOnce } = Kinds.kinds
  for (const [kind, bindingOf] of Object.entries(atOnce)) {
    for (const [opens, values] of [
      ["just before it runs", ["slow", "up", "down", "?"]],
      ["when it runs, or just after", ["slow", "up", "?", "down"]]
    ] as const) {
      scenario(`ruling 28 ${kind}: a record that cannot be read also waits when the breaker opens ${opens}`, () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders", { partitions: 4 })
          yield* memory.createTopic("out")
          yield* Effect.forEach(values, (value, partition) => append("orders", partition, [value]))
          const unreadable = values.indexOf("?")
          let isDown = true
          const app = yield* start(
            bindingOf({
              value: Serde.nullable(readable),
              maxInFlight: 1,
              circuitBreaker: {
                minimumNumberOfCalls: 1,
                slidingWindowSize: 1,
                waitDurationInOpenState: "30 seconds",
                automaticPauseOnOpen: false
              },
              // The place of the first goes through the others, without a wait.
              handle: ({ value }) =>
                value === "slow"
                  ? Effect.sleep("1 second")
                  : Effect.suspend(() => (value === "down" && isDown ? Effect.fail(new Kinds.Down()) : Effect.void))
            })
          )
          yield* advance("1 second")
          assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
          const opened = app.events.findIndex(({ _tag }) => _tag === "BreakerChanged")
          const givenUp = app.events.findIndex(
            (event) => event._tag === "AttemptFailed" && event.record.partition === unreadable
          )
          // Its turn may have been before.
          assert.isBelow(givenUp, opens === "just before it runs" ? 0 : opened)
          isDown = false
          const settledAs = (wanted: string) => app.of("Settled").filter(({ settlement }) => settlement === wanted)
          yield* until(() => settledAs("Handled").length + settledAs("DeadLettered").length === 4, "5 seconds")
          assert.deepStrictEqual(
            settledAs("DeadLettered").map(({ record }) => record.partition),
            [unreadable]
          )
        })
      )
    }
  }

  scenario("ruling 35 a stop neither awaits nor handles records that wait in lanes for the breaker", () =>
    Effect.gen(function* () {
      const memory = yield* cluster("down", "up")
      let calls = 0
      const app = yield* start(
        Binding.make("orders", {
          ...{ ...orders, processingOrder: "unordered", onError },
          circuitBreaker: { ...circuitBreaker, automaticPauseOnOpen: false },
          handler: ({ value }) =>
            Effect.suspend(() => {
              calls++
              return value === "down" ? Effect.delay(Effect.fail(new Down()), 10) : Effect.sleep(100)
            })
        })
      )
      yield* advance("1 second")
      assert.strictEqual(calls, 2)
      const before = yield* now
      yield* inTime(app.close, "100 millis")
      assert.isBelow((yield* now) - before, 1_000)
      assert.strictEqual(calls, 2)
      assert.deepStrictEqual(app.of("DrainTimedOut"), [])
      assert.strictEqual((yield* memory.committed("billing", "orders", 0)) ?? 0n, 0n)
    })
  )

  scenario(
    "ruling 29 RTY-04 a batch with a permanent failure that names no record is split into records, and the breaker does not count it",
    () =>
      Effect.gen(function* () {
        yield* cluster("a", "invalid", "b")
        const handled: Array<string> = []
        let isDown = true
        const app = yield* start(
          Binding.makeBatch("orders", {
            ...{ ...orders, onError, circuitBreaker },
            handleBatch: ({ deliveries }) =>
              Effect.gen(function* () {
                if (isDown) return yield* new Down()
                if (deliveries.some(({ value }) => value === "invalid")) return yield* new Invalid()
                handled.push(...deliveries.map(({ value }) => value))
              })
          })
        )
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
        isDown = false
        yield* advance("31 seconds")
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "CLOSED")
        assert.deepStrictEqual(handled, ["a", "b"])
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["invalid"])
      })
  )

  scenario("every listener hears of a change before the first call of the new state begins", () =>
    Effect.gen(function* () {
      yield* cluster("a", "b")
      let isDown = true
      const app = yield* start(
        Binding.make("orders", {
          ...{ ...orders, onError, circuitBreaker },
          handler: () => Effect.suspend(() => (isDown ? Effect.fail(new Down()) : Effect.void))
        })
      )
      isDown = false
      yield* advance("31 seconds")
      const told = app.events.flatMap((event) =>
        event._tag === "BreakerChanged" ? [event.to] : event._tag === "Started" ? ["call"] : []
      )
      assert.deepStrictEqual(told, ["call", "OPEN", "HALF_OPEN", "call", "CLOSED", "call"])
    })
  )
})
