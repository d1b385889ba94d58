import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Deferred, Effect, Schema } from "effect"
import { advance, append, inTime, orders, scenario, settle, start, until } from "../bus.ts"

class Boom extends Schema.TaggedError<Boom>()("Boom", {}) {}

const values = (count: number) => Array.from({ length: count }, (_, index) => `v${index}`)

describe("acknowledgement", () => {
  scenario("OFF-03 MANUAL_IMMEDIATE: a record's offset is committed before the next one of its partition starts", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(5))
      const committedAtStart: Array<bigint | undefined> = []
      yield* start(
        Binding.make("orders", {
          ...orders,
          handler: () => Effect.map(memory.committed("billing", "orders", 0), (offset) => committedAtStart.push(offset))
        })
      )
      assert.deepStrictEqual(committedAtStart, [undefined, 1n, 2n, 3n, 4n])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 5n)
    })
  )

  scenario(
    "OFF-03 a slow commit of one partition does not hold up another partition's handler",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        yield* append("orders", 0, ["a0", "a1"])
        const handled: Array<string> = []
        yield* start(
          Binding.make("orders", { ...orders, handler: ({ value }) => Effect.sync(() => handled.push(value)) })
        )
        assert.deepStrictEqual(handled, ["a0"])
        yield* append("orders", 1, ["b0"])
        yield* settle
        assert.deepStrictEqual(handled, ["a0", "b0"])
        yield* advance("10 seconds")
        assert.deepStrictEqual(handled, ["a0", "b0", "a1"])
        yield* advance("10 seconds")
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
        assert.strictEqual(yield* memory.committed("billing", "orders", 1), 1n)
      }),
    { latency: { commit: "5 seconds" } }
  )

  scenario("OFF-04 MANUAL: finished records are committed together, within the commit interval", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* append("orders", 0, values(50))
      yield* append("orders", 1, values(30))
      yield* start(
        Binding.make("orders", { ...orders, ackMode: "MANUAL", commitInterval: "1 second", handler: () => Effect.void })
      )
      yield* settle
      assert.deepStrictEqual(yield* memory.commits("billing"), [])
      yield* advance("1 second")
      const commits = yield* memory.commits("billing")
      assert.deepStrictEqual(
        commits.map(({ partition, offset }) => [partition, offset]),
        [
          [0, 50n],
          [1, 30n]
        ]
      )
    })
  )

  scenario(
    "OFF-04 MANUAL: one commit request is in flight; records that finish meanwhile join the next",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const handled: Array<string> = []
        yield* start(
          Binding.make("orders", {
            ...orders,
            ackMode: "MANUAL",
            commitInterval: 0,
            handler: ({ value }) => Effect.sync(() => handled.push(value))
          })
        )
        yield* append("orders", 0, ["first"])
        yield* settle
        for (const value of ["second", "third", "fourth"]) {
          yield* append("orders", 0, [value])
          yield* settle
        }
        assert.strictEqual(handled.length, 4)
        yield* advance("1 second")
        yield* advance("1 second")
        assert.deepStrictEqual(
          (yield* memory.commits("billing")).map(({ offset }) => offset),
          [1n, 4n]
        )
      }),
    { latency: { commit: "1 second" } }
  )

  scenario("OFF-04 pause and stop flush pending MANUAL commits", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(3))
      const app = yield* start(
        Binding.make("orders", { ...orders, ackMode: "MANUAL", commitInterval: "1 hour", handler: () => Effect.void })
      )
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), undefined)
      yield* app.connector.pause("orders")
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
      yield* app.connector.resume("orders")
      yield* append("orders", 0, values(2))
      yield* settle
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
      yield* app.connector.stop("orders")
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 5n)
    })
  )

  scenario("OFF-06 every finished outcome counts: handled, dead-lettered and skipped records alike", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["fine", "skip", "dead", "fine"])
      yield* start(
        Binding.make("orders", {
          ...orders,
          handler: ({ value }) =>
            value === "fine" ? Effect.void : Effect.fail(new (value === "skip" ? Skip : Dead)()),
          onError: { Skip: Route.skip, Dead: Route.deadLetter("never") }
        })
      )
      yield* settle
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 4n)
      assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 1)
    })
  )

  scenario("OFF-07 a record whose dead letter is not acknowledged stays unfinished", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["fine", "bad", "after"])
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          missingTopics: "wait",
          retry: RetryPolicy.none,
          handler: ({ value }) => (value === "bad" ? Effect.fail(new Boom()) : Effect.void),
          onError: { Boom: Route.retry }
        })
      )
      yield* advance("1 minute")
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      yield* inTime(app.connector.stop("orders"))
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
    })
  )

  scenario("OFF-10 a first record that fails is delivered again after a restart, not skipped", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["first"])
      const seen: Array<string> = []
      const never = Binding.make("orders", {
        ...orders,
        shutdownTimeout: 0,
        handler: ({ value }) =>
          Effect.andThen(
            Effect.sync(() => seen.push(value)),
            Effect.never
          )
      })
      const app = yield* start(never)
      yield* app.close
      yield* append("orders", 0, ["second"])
      yield* start(Binding.make("orders", { ...orders, handler: ({ value }) => Effect.sync(() => seen.push(value)) }))
      assert.deepStrictEqual(seen, ["first", "first", "second"])
    })
  )

  scenario("OFF-16 a result of an older assignment changes nothing in the new one", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["slow", "next"])
      const finish = yield* Deferred.make<void>()
      let calls = 0
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          handler: () => (++calls === 1 ? Effect.uninterruptible(Deferred.await(finish)) : Effect.never)
        })
      )
      yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
      yield* until(() => app.of("PartitionAssigned").length === 2)
      yield* Deferred.succeed(finish, undefined)
      yield* until(() => calls === 2)
      yield* advance("10 seconds")
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), undefined)
      assert.deepStrictEqual(
        app.of("Started").map(({ record }) => record.offset),
        [0n, 0n]
      )
    })
  )

  scenario("OFF-18 every delivery names its record by topic, partition and offset", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { firstOffset: 9_007_199_254_740_993n })
      yield* append("orders", 0, values(2))
      const keys: Array<string> = []
      yield* start(
        Binding.make("orders", {
          ...orders,
          handler: (delivery) => Effect.sync(() => keys.push(delivery.deduplicationKey))
        })
      )
      assert.deepStrictEqual(keys, ["orders-0-9007199254740993", "orders-0-9007199254740994"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 9_007_199_254_740_995n)
    })
  )

  scenario("OFF-06 control records and compacted holes are committed over: lag reaches 0", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.appendControl("orders", 0, 2)
      yield* append("orders", 0, values(3))
      yield* memory.appendAborted("orders", 0, [{ value: null }, { value: null }])
      yield* memory.compact("orders", 0, (record) => record.offset === 3n)
      const offsets: Array<bigint> = []
      yield* start(
        Binding.make("orders", { ...orders, handler: ({ record }) => Effect.sync(() => offsets.push(record.offset)) })
      )
      yield* advance("1 second")
      assert.deepStrictEqual(offsets, [2n, 4n])
      const { logEnd } = yield* memory.offsets("orders", 0)
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), logEnd)
    })
  )

  scenario("BND-15 OFF-18 the handler sees three added headers after the record's own", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const own = { key: "x-eventbus-binding-name", value: new Uint8Array([1]) }
      yield* memory.append("orders", 0, [{ value: new Uint8Array(), headers: [own, { key: "a", value: null }] }])
      const seen: Array<string> = []
      yield* start(
        Binding.make("orders", {
          ...orders,
          handler: ({ headers }) => Effect.sync(() => seen.push(...headers.map((header) => header.key)))
        })
      )
      assert.deepStrictEqual(seen, [
        "a",
        "x-eventbus-binding-name",
        "x-eventbus-received-timestamp",
        "x-eventbus-consumer-instance"
      ])
    })
  )
})

class Skip extends Schema.TaggedError<Skip>()("Skip", {}) {}
class Dead extends Schema.TaggedError<Dead>()("Dead", {}) {}

describe("commits that fail", () => {
  scenario("OFF-08 a commit that the broker refuses is sent again until it is accepted; handling waits", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(2))
      yield* memory.inject({ _tag: "CoordinatorMoved", duration: "10 seconds" })
      const app = yield* start(Binding.make("orders", { ...orders, handler: () => Effect.void }))
      yield* until(() => app.of("Started").length > 0, "1 second")
      yield* memory.inject({ _tag: "CoordinatorMoved", duration: "20 seconds" })
      yield* append("orders", 0, ["more"])
      yield* advance("15 seconds")
      assert.isAbove(app.of("CommitFailed").length, 1)
      yield* until(() => app.of("Committed").some(({ offset }) => offset === 3n), "1 second")
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
    })
  )

  scenario("OFF-08 a commit whose answer is lost is repeated and never goes backwards", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.addFault(FaultPlan.nth(1, { operation: "commit" }, { _tag: "LoseResponse" }))
      yield* append("orders", 0, values(5))
      const app = yield* start(
        Binding.make("orders", { ...orders, ackMode: "MANUAL", commitInterval: 0, handler: () => Effect.void })
      )
      yield* until(() => app.of("Committed").some(({ offset }) => offset === 5n), "5 seconds")
      const offsets = (yield* memory.commits("billing")).map(({ offset }) => offset)
      assert.deepStrictEqual(offsets, [...offsets].sort())
      assert.strictEqual(offsets.at(-1), 5n)
    })
  )

  scenario("OFF-09 nothing is committed for a lost partition", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(3))
      const app = yield* start(
        Binding.make("orders", { ...orders, ackMode: "MANUAL", commitInterval: "1 hour", handler: () => Effect.void })
      )
      yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
      yield* until(() => app.of("PartitionAssigned").length === 2)
      assert.deepStrictEqual(yield* memory.commits("billing"), [])
      assert.deepStrictEqual(
        app.of("Started").map(({ record }) => record.offset),
        [0n, 1n, 2n, 0n, 1n, 2n]
      )
    })
  )
})
