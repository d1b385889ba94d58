/** The records behind a parked key wait in the source: how long that has to keep them, and what happens to a key whose records it is about to delete, or has deleted. */
import { assert, describe } from "@effect/vitest"
import { Broker, BrokerError } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { type App, advance, inTime, scenario, start, text, valuesOf } from "../bus.ts"
import { keyed, publishKeyed } from "./keys.ts"

const source = (config: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, ({ createTopic }) =>
    createTopic("orders", { config: new Map(Object.entries(config)) })
  )

const withAdmin = <A, E>(use: (admin: Broker.Admin) => Effect.Effect<A, E>) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, ({ broker }) => Effect.scoped(Effect.flatMap(broker.admin, use)))

const deleteBelow = (before: bigint) => withAdmin((admin) => admin.deleteRecords("orders", [{ partition: 0, before }]))

const seconds = (count: number) => Effect.forEach(Array.from({ length: count }), () => advance("1 second"))

const followersOf = ({ connector }: App) => Effect.map(connector.snapshot("orders"), ({ parked }) => parked?.followers)

describe("PKO-07 retention of the source", () => {
  scenario(
    "PKO-07 a source that keeps its records for too short a time is not read, and health says what is allowed",
    () =>
      Effect.gen(function* () {
        yield* source({ "retention.ms": "19999" })
        const { binding, handled } = keyed({})
        const app = yield* start(binding)
        yield* publishKeyed("a1")
        yield* advance("30 seconds")
        assert.deepStrictEqual(handled, [])
        const { status, reasons } = yield* app.connector.health
        assert.strictEqual(status, "DOWN")
        const problems = reasons.flatMap((reason) => (reason._tag === "UnitIncomplete" ? [reason.problem] : []))
        assert.include(
          problems[0],
          "retention.ms of source 'orders' is 19999; allowed with orderingMode PER_KEY is 20000 or more"
        )
        yield* withAdmin((admin) => admin.alterTopicConfig("orders", new Map([["retention.ms", "20000"]])))
        yield* advance("6 seconds")
        assert.deepStrictEqual(handled, ["a1"])
      })
  )

  scenario("PKO-07 where the configuration cannot be read, the binding runs, and says so once", () =>
    Effect.gen(function* () {
      yield* source({ "retention.ms": "19999" })
      const memory = yield* MemoryBroker.MemoryBroker
      const denied = new BrokerError.AuthorizationFailed({
        resource: "topic",
        name: "orders",
        operation: "DescribeConfigs"
      })
      const { binding, handled } = keyed({ fails: { a1: 1 } })
      const broker = {
        ...memory.broker,
        admin: Effect.map(memory.broker.admin, (admin) => ({ ...admin, topicConfig: () => Effect.fail(denied) }))
      }
      const app = yield* Effect.provideService(start(binding), Broker.Broker, broker)
      yield* publishKeyed("a1", "a2")
      yield* seconds(5)
      yield* advance("3 minutes")
      assert.deepStrictEqual(handled, ["a1", "a2"])
      assert.strictEqual(app.of("RetentionUnknown").length, 1)
    })
  )

  scenario("PKO-05 PKO-07 a key whose first follower is older than half of the retention is given up in order", () =>
    Effect.gen(function* () {
      yield* source({ "retention.ms": "400000" })
      const { binding, handled } = keyed({ perKey: { onDeadLetter: "hold" }, wrong: ["a1"] })
      const app = yield* start(binding)
      yield* publishKeyed("a1", "b1")
      yield* advance("100 seconds")
      yield* publishKeyed("a2", "a3")
      yield* advance("199 seconds")
      assert.strictEqual(app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered").length, 0)
      assert.deepStrictEqual(handled, ["b1"])
      yield* seconds(3)
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["a1", "a2", "a3"])
      yield* publishKeyed("a4")
      yield* advance("1 second")
      assert.deepStrictEqual(handled, ["b1", "a4"])
    })
  )

  scenario("PKO-05 PKO-07 a key that fails again and again is given up behind the record that waits", () =>
    Effect.gen(function* () {
      yield* source({ "retention.ms": "50000" })
      const { binding, handled } = keyed({ fails: { a1: 1, a2: 1, a3: 1, a4: 1 } })
      yield* start(binding)
      yield* publishKeyed("a1", "a2", "a3", "a4", "a5")
      // a4 is older than half of the retention while a3 waits for its delivery.
      yield* seconds(26)
      yield* publishKeyed("a6")
      yield* seconds(20)
      assert.deepStrictEqual(
        [handled, yield* valuesOf("orders.DLT")],
        [
          ["a1", "a2", "a3", "a6"],
          ["a4", "a5"]
        ]
      )
    })
  )

  scenario("PKO-07 a group that is far behind gives up no key for the age of its records alone", () =>
    Effect.gen(function* () {
      yield* source({ "retention.ms": "400000" })
      yield* publishKeyed("a1", "a2")
      yield* advance("390 seconds")
      const { binding, handled } = keyed({ fails: { a1: 1 } })
      yield* start(binding)
      yield* seconds(15)
      assert.deepStrictEqual(handled, ["a1", "a2"])
    })
  )
})

describe("PKO-07 records that the source has deleted behind a parked key", () => {
  const perKey = { maxParkedBytes: 1 } as const

  scenario("PKO-07 what is gone is reported with its key and offsets, counted, and the key goes on", () =>
    Effect.gen(function* () {
      yield* source()
      const { binding, handled } = keyed({ perKey, fails: { a1: 1 } })
      const app = yield* start(binding)
      yield* publishKeyed("a1", "b1", "a2", "a3", "b2", "a4")
      yield* advance("1 second")
      assert.strictEqual(yield* followersOf(app), 3)
      yield* deleteBelow(4n)
      yield* seconds(12)
      assert.deepStrictEqual(handled, ["b1", "b2", "a1", "a4"])
      const [gone, ...more] = app.of("RecordsGone")
      assert.deepStrictEqual(more, [])
      assert.deepStrictEqual([gone?.gone, gone?.cause, gone?.keys, gone?.from, gone?.to], [2n, "retention", 1, 2n, 6n])
      assert.deepStrictEqual(
        gone?.behind?.map(({ key, offset }) => [text(key), offset]),
        [["a", 0n]]
      )
      assert.strictEqual(yield* followersOf(app), 0)
    })
  )

  scenario("PKO-07 what is gone before the next owner reads it is reported, and the key goes on", () =>
    Effect.gen(function* () {
      yield* source()
      const first = yield* start(keyed({ fails: { a1: 1 } }).binding)
      yield* publishKeyed("a1", "a2", "a3", "b1")
      yield* advance("1 second")
      yield* inTime(first.close)
      yield* deleteBelow(2n)
      const { binding, handled } = keyed({})
      const app = yield* start(binding)
      yield* seconds(12)
      assert.deepStrictEqual(handled, ["a1", "a3"])
      const gone = app.of("RecordsGone").map(({ from, to, gone, cause, keys }) => [from, to, gone, cause, keys])
      assert.deepStrictEqual(gone, [[1n, 2n, undefined, "retention", 1]])
      assert.strictEqual(yield* followersOf(app), 0)
    })
  )

  scenario("PKO-07 the offsets of what is gone are said also where the lock of its key has moved on by then", () =>
    Effect.gen(function* () {
      yield* source()
      const { binding, handled } = keyed({ perKey, fails: { a1: 1, a3: 1 } })
      const app = yield* start(binding)
      yield* publishKeyed("a1", "b1", "a2", "a3", "a4")
      yield* advance("1 second")
      yield* deleteBelow(3n)
      yield* seconds(25)
      assert.deepStrictEqual(handled, ["b1", "a1", "a3", "a4"])
      const gone = app.of("RecordsGone").map(({ from, to, gone, cause, keys }) => [from, to, gone, cause, keys])
      assert.deepStrictEqual(gone, [[2n, 5n, 1n, "retention", 1]])
    })
  )

  scenario("PKO-07 a follower that compaction has replaced is reported and counted, and the key goes on", () =>
    Effect.gen(function* () {
      yield* source()
      const memory = yield* MemoryBroker.MemoryBroker
      const { binding, handled } = keyed({ perKey, fails: { a1: 1 } })
      const app = yield* start(binding)
      yield* publishKeyed("a1", "a2", "a3")
      yield* advance("1 second")
      yield* memory.compact("orders", 0, ({ offset }) => offset < 2n)
      yield* seconds(12)
      assert.deepStrictEqual(handled, ["a1", "a3"])
      const gone = app.of("RecordsGone").map(({ from, to, gone, cause, keys }) => [from, to, gone, cause, keys])
      assert.deepStrictEqual(gone, [[1n, 3n, 1n, "compaction", 1]])
      assert.strictEqual(yield* followersOf(app), 0)
    })
  )
})
