import { assert, describe } from "@effect/vitest"
import { Binding, CurrentTransaction, RetryPolicy, Route } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, bytes, orders, scenario, settle, start, until } from "../bus.ts"
import { Down, kinds } from "../kinds.ts"

/** A breaker that one failure opens, and that lets one trial call through. */
const oneTrial = {
  ...orders,
  retry: RetryPolicy.none,
  circuitBreaker: {
    minimumNumberOfCalls: 1,
    slidingWindowSize: 1,
    permittedNumberOfCallsInHalfOpenState: 1,
    waitDurationInOpenState: "10 seconds",
    automaticPauseOnOpen: false
  }
} as const

describe("a trial call that fails after its partition was lost", () => {
  for (const [kind, bindingOf] of Object.entries(kinds)) {
    scenario(`CB-11 ruling 27 ${kind}: an uninterruptible handler gives its permit back, and the breaker goes on`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        yield* memory.createTopic("out")
        let isDown = true
        let takes: "0 millis" | "5 seconds" = "0 millis"
        const app = yield* start(
          bindingOf({
            circuitBreaker: {
              minimumNumberOfCalls: 1,
              slidingWindowSize: 1,
              permittedNumberOfCallsInHalfOpenState: 1,
              waitDurationInOpenState: "10 seconds",
              slowCallDuration: "1 minute"
            },
            handle: () =>
              Effect.uninterruptible(
                Effect.andThen(
                  Effect.suspend(() => Effect.sleep(takes)),
                  Effect.suspend(() => (isDown ? Effect.fail(new Down()) : Effect.void))
                )
              )
          })
        )
        yield* append("orders", 0, ["a", "b"])
        yield* settle
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
        takes = "5 seconds"
        yield* advance("10 seconds")
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "HALF_OPEN")
        yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
        yield* advance("3 seconds")
        yield* advance("3 seconds")
        isDown = false
        yield* append("orders", 1, ["c"])
        const handled = () => app.of("Settled").filter(({ settlement }) => settlement === "Handled").length
        yield* until(() => handled() >= 3, "5 seconds")
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "CLOSED")
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      })
    )
  }

  scenario(
    "CB-11 ruling 27 transactional: a call that waits for its output is cut off at once, and gives its permit back",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        yield* memory.createTopic("out")
        yield* memory.createTopic("unreachable")
        yield* memory.addFault(
          FaultPlan.chance(1, { operation: "produce", topic: "unreachable" }, { _tag: "LoseRequest" })
        )
        const calls: Array<string> = []
        const app = yield* start(
          Binding.makeTransactional("orders", {
            ...oneTrial,
            onError: { Down: Route.retry },
            handler: ({ value }) =>
              Effect.suspend(() => {
                const isTrial = calls.push(value) === 2
                if (calls.length === 1) return Effect.fail(new Down())
                const topic = isTrial ? "unreachable" : "out"
                return Effect.orDie(CurrentTransaction.send({ topic, key: null, value: bytes(value) }))
              })
          })
        )
        yield* append("orders", 0, ["a"])
        yield* settle
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
        yield* advance("10 seconds")
        assert.deepStrictEqual(calls, ["a", "a"])
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "HALF_OPEN")
        yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
        yield* append("orders", 1, ["b"])
        yield* advance("3 seconds")
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "CLOSED")
        assert.deepStrictEqual(calls, ["a", "a", "b"])
        // The transaction of the lost partition is over when its producer has given up what it was sending.
        yield* until(() => calls.length === 4, "30 seconds")
        assert.deepStrictEqual(calls, ["a", "a", "b", "a"])
      })
  )

  scenario(
    "CB-11 ruling 27 transactional: a failed call gives its permit back when its partition is lost while its transaction is being aborted",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        yield* memory.createTopic("out")
        let isDown = true
        const app = yield* start(
          Binding.makeTransactional("orders", {
            ...oneTrial,
            onError: { Down: Route.retry },
            handler: () => Effect.suspend(() => (isDown ? Effect.fail(new Down()) : Effect.void))
          })
        )
        yield* append("orders", 0, ["a"])
        yield* settle
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
        yield* memory.addFault(FaultPlan.nth(1, { operation: "endTransaction" }, { _tag: "LoseRequest" }))
        yield* advance("10 seconds")
        assert.strictEqual(app.of("Started").length, 2)
        assert.strictEqual(app.of("AttemptFailed").length, 1)
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "HALF_OPEN")
        yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
        isDown = false
        yield* append("orders", 1, ["b"])
        const handled = () => app.of("Settled").filter(({ settlement }) => settlement === "Handled").length
        yield* until(() => handled() === 2, "5 seconds")
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "CLOSED")
      })
  )

  scenario(
    "CB-11 ruling 27 batch: a failed call gives its permit back when its partition is lost while earlier records are being committed",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const calls: Array<string> = []
        const app = yield* start(
          Binding.make("orders", {
            ...oneTrial,
            circuitBreaker: { ...oneTrial.circuitBreaker, permittedNumberOfCallsInHalfOpenState: 2 },
            listenerType: "BATCH",
            ackMode: "MANUAL_IMMEDIATE",
            onError: { Down: Route.retry },
            handler: ({ value }) =>
              Effect.suspend(() => {
                const isFirst = !calls.includes(value)
                calls.push(value)
                return isFirst ? Effect.fail(new Down()) : Effect.void
              })
          })
        )
        yield* append("orders", 0, ["a", "b"])
        yield* settle
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
        yield* memory.addFault(FaultPlan.nth(1, { operation: "commit" }, { _tag: "LoseRequest" }))
        yield* advance("10 seconds")
        assert.deepStrictEqual(calls, ["a", "a", "b"])
        assert.strictEqual(app.of("AttemptFailed").length, 1)
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "HALF_OPEN")
        yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
        yield* advance("1 second")
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "CLOSED")
        assert.deepStrictEqual(calls, ["a", "a", "b", "a", "b"])
      })
  )
})
