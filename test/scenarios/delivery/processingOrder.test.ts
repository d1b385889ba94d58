import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Deferred, Effect, Schema } from "effect"
import * as fc from "fast-check"
import {
  advance,
  append,
  bytes,
  orders,
  publish,
  runScenario,
  scenario,
  settle,
  start,
  until,
  valuesOf
} from "../bus.ts"

class Boom extends Schema.TaggedError<Boom>()("Boom", {}) {}

const keyed = { ...orders, key: Serde.nullable(Serde.string), processingOrder: "key" } as const

/** `a0 a1 b0`: the letter is the key. */
const byLetter = (values: ReadonlyArray<string>) => publish("orders", values, (index) => values[index]!.slice(0, 1))

describe("processingOrder key", () => {
  scenario("BND-16 a slow key holds its own records only; each key keeps its order", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* byLetter(["a0", "b0", "a1", "b1", "c0", "b2"])
      const handled: Array<string> = []
      yield* start(
        Binding.make("orders", {
          ...keyed,
          handler: ({ value }) =>
            Effect.andThen(
              value === "a0" ? Effect.sleep("1 minute") : Effect.void,
              Effect.sync(() => handled.push(value))
            )
        })
      )
      assert.deepStrictEqual([...handled].sort(), ["b0", "b1", "b2", "c0"])
      assert.deepStrictEqual(
        handled.filter((value) => value.startsWith("b")),
        ["b0", "b1", "b2"]
      )
      assert.isTrue(((yield* memory.committed("billing", "orders", 0)) ?? 0n) === 0n)
      yield* advance("1 minute")
      assert.deepStrictEqual(handled.slice(-2), ["a0", "a1"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 6n)
    })
  )

  scenario("BND-16 a failing key backs off by itself and ends in the dead letter topic", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* byLetter(["a0", "a1", "b0", "b1"])
      const handled: Array<string> = []
      yield* start(
        Binding.make("orders", {
          ...keyed,
          retry: RetryPolicy.blocking({ maxAttempts: 3, initialBackoff: "1 second", jitter: 0 }),
          handler: ({ value }) => (value === "a0" ? Effect.fail(new Boom()) : Effect.sync(() => handled.push(value))),
          onError: { Boom: Route.retry }
        })
      )
      assert.deepStrictEqual(handled, ["b0", "b1"])
      yield* advance("3 seconds")
      assert.deepStrictEqual(handled, ["b0", "b1", "a1"])
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["a0"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 4n)
    })
  )

  scenario("OFF-06 after a stop the next owner starts at the first unfinished record: nothing is missing", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* byLetter(["a0", "b0", "c0", "d0"])
      const first: Array<string> = []
      const app = yield* start(
        Binding.make("orders", {
          ...keyed,
          shutdownTimeout: 0,
          handler: ({ value }) => (value === "b0" ? Effect.never : Effect.sync(() => first.push(value)))
        })
      )
      yield* app.close
      assert.deepStrictEqual([...first].sort(), ["a0", "c0", "d0"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      const second: Array<string> = []
      yield* start(Binding.make("orders", { ...keyed, handler: ({ value }) => Effect.sync(() => second.push(value)) }))
      assert.deepStrictEqual([...second].sort(), ["b0", "c0", "d0"])
    })
  )

  scenario("BND-16 records without a key share one lane and keep their order; an empty key is a key", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const values = ["n0", "n1", "e0", "n2"]
      yield* publish("orders", values, (index) => (values[index] === "e0" ? "" : null))
      const started: Array<string> = []
      const gate = yield* Deferred.make<void>()
      yield* start(
        Binding.make("orders", {
          ...keyed,
          handler: ({ value }) =>
            Effect.andThen(
              Effect.sync(() => started.push(value)),
              value === "n0" ? Deferred.await(gate) : Effect.void
            )
        })
      )
      assert.deepStrictEqual(started, ["n0", "e0"])
      yield* Deferred.succeed(gate, undefined)
      yield* settle
      assert.deepStrictEqual(started, ["n0", "e0", "n1", "n2"])
    })
  )

  scenario("NFR-02 OFF-06 random keys, delays and failures: order per key, nothing lost, all committed", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.record({
              key: fc.constantFrom("a", "b", "c", "d"),
              millis: fc.integer({ min: 0, max: 50 }),
              failures: fc.integer({ min: 0, max: 3 })
            }),
            { minLength: 1, maxLength: 30 }
          ),
          fc.integer({ min: 1, max: 5 }),
          (plan, maxInFlight) => runScenario(randomRun(plan, maxInFlight))
        ),
        { numRuns: 25 }
      )
    )
  )
})

interface Planned {
  readonly key: string
  readonly millis: number
  readonly failures: number
}

const randomRun = (plan: ReadonlyArray<Planned>, maxInFlight: number) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* memory.createTopic("orders")
    yield* publish(
      "orders",
      plan.map((_, index) => String(index)),
      (index) => plan[index]!.key
    )
    const done: Array<number> = []
    const failed = new Map<string, number>()
    let running = 0
    let most = 0
    yield* start(
      Binding.make("orders", {
        ...keyed,
        maxInFlight,
        retry: RetryPolicy.blocking({ initialBackoff: "10 millis", jitter: 0 }),
        handler: ({ value }) =>
          Effect.gen(function* () {
            const { millis, failures } = plan[Number(value)]!
            most = Math.max(most, ++running)
            yield* Effect.ensuring(
              Effect.sleep(millis),
              Effect.sync(() => running--)
            )
            const before = failed.get(value) ?? 0
            if (before < failures) {
              failed.set(value, before + 1)
              return yield* new Boom()
            }
            done.push(Number(value))
          }),
        onError: { Boom: Route.retry }
      })
    )
    let committed: bigint | undefined
    for (let round = 0; round < 500 && committed !== BigInt(plan.length); round++) {
      yield* advance("20 millis")
      committed = yield* memory.committed("billing", "orders", 0)
    }
    assert.strictEqual(committed, BigInt(plan.length))
    assert.isAtMost(most, maxInFlight)
    for (const key of ["a", "b", "c", "d"]) {
      const ofKey = done.filter((index) => plan[index]!.key === key)
      assert.deepStrictEqual(
        ofKey,
        [...ofKey].sort((x, y) => x - y)
      )
    }
    const dead = plan.flatMap(({ failures }, index) => (failures === 3 ? [index] : []))
    const letters = dead.length === 0 ? [] : (yield* valuesOf("orders.DLT")).map(Number)
    assert.deepStrictEqual(
      letters.sort((x, y) => x - y),
      dead
    )
    assert.deepStrictEqual(
      [...done, ...dead].sort((x, y) => x - y),
      plan.map((_, index) => index)
    )
  })

describe("processingOrder unordered", () => {
  const unordered = { ...orders, processingOrder: "unordered" } as const

  scenario("BND-13 maxInFlight bounds the handlers of all partitions and consumers of the binding together", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 4 })
      for (const partition of [0, 1, 2, 3])
        yield* append(
          "orders",
          partition,
          Array.from({ length: 10 }, () => "v")
        )
      let running = 0
      let most = 0
      let handled = 0
      yield* start(
        Binding.make("orders", {
          ...unordered,
          concurrency: 2,
          maxInFlight: 3,
          handler: () =>
            Effect.gen(function* () {
              most = Math.max(most, ++running)
              yield* Effect.sleep("1 second")
              running--
              handled++
            })
        })
      )
      yield* until(() => handled === 40, "1 second")
      assert.strictEqual(most, 3)
    })
  )

  scenario("REB-03 waiting for a slot uses no processing budget", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["r0", "r1", "r2", "r3"])
      let handled = 0
      const app = yield* start(
        Binding.make("orders", {
          ...unordered,
          maxInFlight: 1,
          maxPollInterval: "20 seconds",
          retry: RetryPolicy.none,
          handler: () =>
            Effect.andThen(
              Effect.sleep("10 seconds"),
              Effect.sync(() => handled++)
            )
        })
      )
      yield* until(() => handled === 4, "5 seconds")
      assert.deepStrictEqual(app.of("ProcessingBudgetReached"), [])
      assert.deepStrictEqual(app.of("AttemptFailed"), [])
    })
  )

  scenario("REB-10 a pause holds records that wait for a slot", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["r0", "r1", "r2"])
      const started: Array<string> = []
      const app = yield* start(
        Binding.make("orders", {
          ...unordered,
          maxInFlight: 1,
          handler: ({ value }) =>
            Effect.andThen(
              Effect.sync(() => started.push(value)),
              Effect.sleep("1 second")
            )
        })
      )
      yield* app.connector.pause("orders")
      yield* advance("1 minute")
      assert.deepStrictEqual(started, ["r0"])
      yield* app.connector.resume("orders")
      yield* advance("1 second")
      yield* advance("1 second")
      assert.deepStrictEqual(started, ["r0", "r1", "r2"])
    })
  )

  scenario("LIF-12 a stop waits for running handlers and starts none that wait for a slot", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append(
        "orders",
        0,
        Array.from({ length: 20 }, (_, index) => `r${index}`)
      )
      const started: Array<string> = []
      const app = yield* start(
        Binding.make("orders", {
          ...unordered,
          maxInFlight: 2,
          handler: ({ value }) =>
            Effect.andThen(
              Effect.sync(() => started.push(value)),
              Effect.sleep("1 second")
            )
        })
      )
      const stop = yield* Effect.forkChild(app.connector.stop("orders"), { startImmediately: true })
      yield* advance("1 second")
      assert.isDefined(stop.pollUnsafe())
      assert.deepStrictEqual(started, ["r0", "r1"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
    })
  )

  scenario(
    "NFR-06 REB-09 records in handlers count as buffered: fetching pauses for reason backpressure",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.append(
          "orders",
          0,
          Array.from({ length: 400 }, () => ({ value: bytes("v") }))
        )
        const gate = yield* Deferred.make<void>()
        let handled = 0
        const app = yield* start(
          Binding.make("orders", {
            ...unordered,
            maxBufferedRecords: 100,
            maxInFlight: 1000,
            handler: () =>
              Effect.andThen(
                Deferred.await(gate),
                Effect.sync(() => handled++)
              )
          })
        )
        assert.isAtMost(app.of("Started").length, 300)
        assert.deepStrictEqual(
          app.of("FetchPaused").map(({ reasons }) => reasons),
          [["backpressure"]]
        )
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
        yield* Deferred.succeed(gate, undefined)
        yield* until(() => handled === 400)
      }),
    { maxRecordsPerChunk: 5 }
  )

  scenario("NFR-06 a record that never ends stops intake when its partition is full, and loses nothing", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const total = 10_200
      yield* memory.append(
        "orders",
        0,
        Array.from({ length: total }, (_, index) => ({ value: bytes(String(index)) }))
      )
      const gate = yield* Deferred.make<void>()
      let handled = 0
      yield* start(
        Binding.make("orders", {
          ...unordered,
          ackMode: "MANUAL",
          handler: ({ value }) =>
            Effect.andThen(
              value === "0" ? Deferred.await(gate) : Effect.void,
              Effect.sync(() => handled++)
            )
        })
      )
      yield* until(() => handled === 9_999)
      yield* settle
      assert.strictEqual(handled, 9_999)
      yield* Deferred.succeed(gate, undefined)
      yield* until(() => handled === total)
      yield* advance("1 second")
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), BigInt(total))
    })
  )
})
