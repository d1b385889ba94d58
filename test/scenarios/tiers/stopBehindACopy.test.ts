import { assert, describe } from "@effect/vitest"
import { Binding, BrokerError, RetryPolicy, Route } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { type App, advance, append, bytes, orders, scenario, settle, start, until, valuesOf } from "../bus.ts"

class Down extends Data.TaggedError("Down")<object> {}

describe("a stop right behind a record that left for a retry topic", () => {
  for (const processingOrder of ["partition", "key", "unordered"] as const) {
    scenario(
      `ruling 6 LIF-12 ${processingOrder}: its copy is published, and records handled behind it are committed with it`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          yield* memory.createTopic("orders.retry-1")
          const calls: Array<string> = []
          const stop = (): Effect.Effect<void> => Effect.orDie(app.connector.stop("orders"))
          const app: App = yield* start(
            Binding.make("orders", {
              ...orders,
              processingOrder,
              ackMode: "MANUAL",
              maxInFlight: 1,
              retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 hour"] }),
              onError: { Down: Route.retry },
              handler: ({ value }) =>
                Effect.gen(function* () {
                  calls.push(value)
                  if (value === "bad") return yield* new Down()
                  // Before the copy of the first record can have left.
                  yield* stop()
                  yield* Effect.sleep("2 seconds")
                })
            })
          )
          yield* append("orders", 0, ["bad", "slow", "later"])
          yield* until(() => calls.length === 2)
          yield* advance("3 seconds")
          assert.strictEqual(yield* app.connector.getState("orders"), "STOPPED")
          assert.deepStrictEqual(calls, ["bad", "slow"])
          assert.strictEqual((yield* memory.log("orders.retry-1", 0)).length, 1)
          assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
        })
    )
  }
})

describe("a stop between a failure and the copy that it leads to", () => {
  for (const orderingMode of ["STRICT", "RELAXED_IN_RETRY"] as const) {
    scenario(
      `RTY-24 ruling 17 ${orderingMode}: when a listener stops the binding at the failure, no copy is published, and the next owner handles the record`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          yield* memory.createTopic("orders.DLT")
          let isDown = true
          const handled: Array<string> = []
          const app = yield* start(
            Binding.make("orders", {
              ...orders,
              orderingMode,
              retry: RetryPolicy.none,
              onError: { Down: Route.retry },
              handler: ({ value }) => (isDown ? Effect.fail(new Down()) : Effect.sync(() => handled.push(value)))
            })
          )
          const fork = Effect.runForkWith(yield* Effect.context())
          yield* app.connector.subscribe(({ _tag }) => {
            if (_tag === "AttemptFailed") fork(Effect.orDie(app.connector.stop("orders")))
          })
          yield* append("orders", 0, ["a"])
          yield* settle
          assert.strictEqual(yield* app.connector.getState("orders"), "STOPPED")
          assert.deepStrictEqual(yield* valuesOf("orders.DLT"), [])
          isDown = false
          yield* app.connector.start("orders")
          yield* settle
          assert.deepStrictEqual(handled, ["a"])
        })
    )
  }

  for (const orderingMode of ["STRICT", "RELAXED_IN_RETRY"] as const) {
    scenario(
      `REB-06 ruling 83 ${orderingMode}: a publish that began before the stop and is refused goes on: its topic is made, and the record is committed`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          yield* memory.createTopic("orders.DLT")
          const app = yield* start(
            Binding.make("orders", {
              ...orders,
              orderingMode,
              retry: RetryPolicy.none,
              onError: { Down: Route.retry },
              handler: () => Effect.fail(new Down())
            })
          )
          yield* append("orders", 0, ["a"])
          yield* advance("1 second")
          yield* deleteTopic("orders.DLT")
          yield* Effect.forkChild(app.connector.stop("orders"))
          yield* advance("10 seconds")
          assert.strictEqual(yield* app.connector.getState("orders"), "STOPPED")
          assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["a"])
          assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
        }),
      { latency: { produce: "2 seconds" } }
    )
  }
})

describe("a stop while the broker refuses the copy of a record that others are behind", () => {
  scenario(
    "REB-06 ruling 83 a stop during an attempt: the waits grow anew, and the copy is published within the drain",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.createTopic("orders.DLT")
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            shutdownTimeout: "8 seconds",
            retry: RetryPolicy.none,
            onError: { Down: Route.retry },
            handler: () => Effect.fail(new Down())
          })
        )
        yield* append("orders", 0, ["a"])
        // The eighth attempt is on its way from 19.7 s to 20.7 s. The wait behind it would be 10 seconds.
        for (let step = 0; step < 202; step++) yield* advance("100 millis")
        yield* Effect.forkChild(app.connector.stop("orders"))
        for (let step = 0; step < 80; step++) yield* advance("100 millis")
        assert.strictEqual(yield* app.connector.getState("orders"), "STOPPED")
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["a"])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      }),
    { latency: { produce: "1 second" }, faults: FaultPlan.make(refusals(8)) }
  )

  scenario(
    "ruling 6 OFF-11 key: no record starts for a prefix that cannot be completed: the next owner handles them all",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const calls: Array<string> = []
        let isDown = true
        const binding = Binding.make("orders", {
          ...orders,
          processingOrder: "key",
          ackMode: "MANUAL",
          missingTopics: "wait",
          retry: RetryPolicy.none,
          onError: { Down: Route.retry },
          handler: ({ value }) =>
            Effect.gen(function* () {
              calls.push(value)
              if (value === "a0" && isDown) return yield* new Down()
              yield* Effect.sleep("2 seconds")
            })
        })
        const app = yield* start(binding)
        yield* memory.append(
          "orders",
          0,
          ["a0", "a1", "a2", "b3"].map((value) => ({ key: bytes(value.slice(0, 1)), value: bytes(value) }))
        )
        yield* settle
        assert.deepStrictEqual(calls.toSorted(), ["a0", "a1", "b3"])
        yield* Effect.forkChild(app.connector.stop("orders"))
        for (let second = 0; second < 30; second++) yield* advance("1 second")
        assert.strictEqual(yield* app.connector.getState("orders"), "STOPPED")
        assert.deepStrictEqual(calls.toSorted(), ["a0", "a1", "b3"])
        isDown = false
        yield* app.connector.start("orders")
        for (let second = 0; second < 10; second++) yield* advance("1 second")
        assert.deepStrictEqual(
          calls.slice(3).filter((value) => value.startsWith("a")),
          ["a0", "a1", "a2"]
        )
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 4n)
      })
  )
})

/** The first produce requests are refused. */
const refusals = (count: number) =>
  Array.from({ length: count }, (_, index) =>
    FaultPlan.nth(
      index + 1,
      { operation: "produce" },
      { _tag: "Refuse", error: new BrokerError.RecordRejected({ topic: "orders.DLT", detail: "not now" }) }
    )
  )

const deleteTopic = (topic: string) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, ({ broker }) =>
    Effect.scoped(Effect.flatMap(broker.admin, (admin) => admin.deleteTopics([topic])))
  )
