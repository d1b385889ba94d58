import { assert, describe } from "@effect/vitest"
import { Binding, type BindingOptions, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, bytes, inTime, orders, scenario, settle, start, until, valuesOf } from "../bus.ts"

class Boom extends Schema.TaggedError<Boom>()("Boom", {}) {}

const values = (count: number) => Array.from({ length: count }, (_, index) => `v${index}`)

const noting = (
  handled: Array<string>,
  settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = {}
): Binding.Binding<never> =>
  Binding.make("orders", {
    ...orders,
    ...settings,
    handler: ({ value }) =>
      Effect.andThen(
        Effect.sleep("1 second"),
        Effect.sync(() => handled.push(value))
      )
  })

describe("pause", () => {
  scenario("REB-10 LIF-05 fetched records are held in order, and a resume continues at the first unfinished one", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(4))
      const handled: Array<string> = []
      const app = yield* start(noting(handled))
      yield* app.connector.pause("orders")
      yield* advance("1 minute")
      assert.deepStrictEqual(handled, ["v0"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      yield* app.connector.resume("orders")
      yield* until(() => handled.length === 4, "1 second")
      assert.deepStrictEqual(handled, values(4))
    })
  )

  scenario("LIF-04 REB-04 a paused binding fetches nothing and stays in the group, however long", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const handled: Array<string> = []
      const app = yield* start(noting(handled))
      yield* app.connector.pause("orders")
      const { generation } = yield* memory.group("billing")
      yield* append("orders", 0, values(3))
      for (let hour = 0; hour < 4; hour++) yield* advance("30 minutes")
      assert.strictEqual((yield* memory.group("billing")).generation, generation)
      assert.deepStrictEqual(app.of("Started"), [])
      assert.deepStrictEqual(
        app.of("FetchPaused").map(({ reasons }) => reasons),
        [["operator"]]
      )
    })
  )

  scenario("REB-09 a pause holds partitions that are assigned later, and lost partitions that come back", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      const first: Array<string> = []
      const one = yield* start(noting(first))
      const two = yield* start(noting([]))
      yield* one.connector.pause("orders")
      yield* append("orders", 0, ["a"])
      yield* append("orders", 1, ["b"])
      yield* inTime(two.close)
      yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
      yield* advance("1 minute")
      assert.isAtLeast(one.of("PartitionAssigned").length, 4)
      assert.deepStrictEqual(one.of("Started"), [])
      yield* one.connector.resume("orders")
      yield* until(() => first.length === 2, "1 second")
      assert.deepStrictEqual([...first].sort(), ["a", "b"])
    })
  )

  scenario("REB-09 a pause survives the crash of the client", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const app = yield* start(noting([]))
      yield* app.connector.pause("orders")
      yield* append("orders", 0, values(2))
      yield* memory.inject({ _tag: "ConnectionDropped" })
      yield* until(() => app.of("PartitionAssigned").length === 2, "10 seconds")
      yield* advance("1 minute")
      assert.deepStrictEqual(app.of("Started"), [])
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
    })
  )

  scenario("LIF-11 a backoff goes on while paused, but the attempt waits for the resume", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["v"])
      let calls = 0
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          handler: () => Effect.suspend(() => (++calls < 3 ? Effect.fail(new Boom()) : Effect.void)),
          onError: { Boom: Route.retry }
        })
      )
      yield* app.connector.pause("orders")
      yield* advance("1 hour")
      assert.strictEqual(calls, 1)
      yield* app.connector.resume("orders")
      yield* advance("1 second")
      assert.strictEqual(calls, 3)
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      assert.deepStrictEqual(app.of("ProcessingBudgetReached"), [])
    })
  )

  scenario("CLS-01 Route.pause keeps the record, pauses the whole binding and names the record", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* append("orders", 0, ["fine", "broken", "next"])
      let mended = false
      const handled: Array<string> = []
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          handler: ({ value }) =>
            value === "broken" && !mended ? Effect.fail(new Boom()) : Effect.sync(() => handled.push(value)),
          onError: { Boom: Route.pause }
        })
      )
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      assert.deepStrictEqual(
        app
          .of("Settled")
          .filter(({ settlement }) => settlement === "Halted")
          .map(({ record }) => record.offset),
        [1n]
      )
      yield* append("orders", 1, ["other"])
      yield* advance("1 hour")
      assert.deepStrictEqual(handled, ["fine"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      mended = true
      yield* app.connector.resume("orders")
      yield* settle
      assert.deepStrictEqual([...handled].sort(), ["broken", "fine", "next", "other"])
    })
  )
})

describe("STRICT with onExhausted halt", () => {
  const strict = {
    ...orders,
    orderingMode: "STRICT",
    onExhausted: "halt",
    retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "100 millis", jitter: 0 })
  } as const

  /** Fails on `bad` until it is mended. */
  const halting = (handled: Array<string>, mended: () => boolean) =>
    Binding.make("orders", {
      ...strict,
      handler: ({ value }) =>
        value === "bad" && !mended() ? Effect.fail(new Boom()) : Effect.sync(() => handled.push(value)),
      onError: { Boom: Route.retry }
    })

  scenario("RTY-21 RTY-22 the partition keeps its record, others go on, a resume tries again", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* append("orders", 0, ["a0", "bad", "a2"])
      const handled: Array<string> = []
      let mended = false
      const app = yield* start(halting(handled, () => mended))
      yield* advance("1 second")
      yield* append("orders", 1, ["b0"])
      yield* settle
      assert.deepStrictEqual(handled, ["a0", "b0"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      const [snapshot] = yield* app.connector.listBindings
      assert.deepStrictEqual([snapshot?.state, snapshot?.pausedBy], ["PAUSED", ["operator"]])
      yield* app.connector.resume("orders")
      yield* advance("1 second")
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      mended = true
      yield* app.connector.resume("orders")
      yield* settle
      assert.deepStrictEqual(handled, ["a0", "b0", "bad", "a2"])
      assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      assert.deepStrictEqual(
        yield* Effect.exit(memory.log("orders.DLT", 0)).pipe(Effect.map((exit) => exit._tag)),
        "Failure"
      )
    })
  )

  scenario(
    "RTY-22 REB-09 a halt survives an eager rebalance",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["bad"])
        const app = yield* start(halting([], () => false))
        yield* advance("1 second")
        const attempts = app.of("AttemptFailed").length
        yield* start(halting([], () => false))
        yield* until(() => app.of("PartitionAssigned").length === 2, "100 millis")
        yield* advance("1 minute")
        assert.strictEqual(app.of("AttemptFailed").length, attempts)
        assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
        yield* app.connector.resume("orders")
        yield* advance("1 second")
        assert.isAbove(app.of("AttemptFailed").length, attempts)
      }),
    { assignment: "eager" }
  )

  scenario("RTY-21 STRICT with dead-letter: the partition is blocked until the copy is published, then goes on", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["bad", "after"])
      const handled: Array<string> = []
      yield* start(
        Binding.make("orders", {
          ...strict,
          onExhausted: "dead-letter",
          handler: ({ value }) => (value === "bad" ? Effect.fail(new Boom()) : Effect.sync(() => handled.push(value))),
          onError: { Boom: Route.retry }
        })
      )
      assert.deepStrictEqual(handled, [])
      yield* advance("100 millis")
      assert.deepStrictEqual(handled, ["after"])
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad"])
    })
  )

  scenario(
    "RTY-22 ruling 17 a last attempt that fails during a stop does not halt: the next owner has all attempts",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        let isDown = true
        const handled: Array<string> = []
        const app = yield* start(
          Binding.make("orders", {
            ...strict,
            onError: { Boom: Route.retry },
            handler: ({ value }) =>
              Effect.andThen(
                Effect.sleep("1 second"),
                Effect.suspend(() => (isDown ? Effect.fail(new Boom()) : Effect.sync(() => handled.push(value))))
              )
          })
        )
        yield* append("orders", 0, ["bad"])
        // In its second and last attempt.
        yield* advance("1500 millis")
        yield* inTime(app.connector.stop("orders"), "1 second")
        isDown = false
        yield* app.connector.start("orders")
        yield* until(() => handled.length === 1, "1 second")
        assert.deepStrictEqual(
          app.of("Settled").map(({ settlement }) => settlement),
          ["Abandoned", "Handled"]
        )
      })
  )

  scenario("LIF-12 stopping a halted binding ends at once and commits nothing behind the record", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a0", "bad", "a2"])
      const app = yield* start(halting([], () => false))
      yield* advance("1 second")
      yield* app.connector.stop("orders")
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
    })
  )
})

describe("back-pressure", () => {
  scenario(
    "NFR-06 REB-09 fetching pauses at the high water of records and goes on at the low one; nothing is missing",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, values(300))
        const handled: Array<string> = []
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            ackMode: "MANUAL",
            maxBufferedRecords: 20,
            handler: ({ value }) =>
              Effect.andThen(
                Effect.sleep("10 millis"),
                Effect.sync(() => handled.push(value))
              )
          })
        )
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
        yield* until(() => handled.length === 300, "100 millis")
        assert.deepStrictEqual(handled, values(300))
        assert.isAbove(app.of("FetchPaused").length, 0)
        assert.strictEqual(app.of("FetchResumed").length, app.of("FetchPaused").length)
      }),
    { maxRecordsPerChunk: 5 }
  )

  scenario(
    "NFR-06 the same in bytes",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const large = "x".repeat(10_000)
        yield* memory.append(
          "orders",
          0,
          Array.from({ length: 40 }, () => ({ value: bytes(large) }))
        )
        let handled = 0
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            maxBufferedBytes: 25_000,
            handler: () =>
              Effect.andThen(
                Effect.sleep("10 millis"),
                Effect.sync(() => handled++)
              )
          })
        )
        assert.deepStrictEqual(app.of("FetchPaused")[0]?.reasons, ["backpressure"])
        yield* until(() => handled === 40, "50 millis")
      }),
    { maxRecordsPerChunk: 1 }
  )

  scenario(
    "REB-09 an operator's resume does not lift back-pressure, and back-pressure does not lift the operator's pause",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, values(100))
        const handled: Array<string> = []
        const app = yield* start(noting(handled, { maxBufferedRecords: 5 }))
        yield* app.connector.pause("orders")
        yield* advance("10 seconds")
        assert.strictEqual(handled.length, 1)
        yield* app.connector.resume("orders")
        yield* settle
        assert.deepStrictEqual(app.of("FetchResumed"), [])
        yield* until(() => handled.length === 100, "1 second")
        assert.deepStrictEqual(handled, values(100))
      }),
    { maxRecordsPerChunk: 1 }
  )
})
