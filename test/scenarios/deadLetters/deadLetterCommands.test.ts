/** Dead letter commands of operators, by the name of the binding. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, Broker, Clusters, DeadLetter, RetryPolicy, Route, Trail } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import {
  append,
  deadLetterDepth,
  headersOf,
  inTime,
  now,
  orders,
  publish,
  scenario,
  settle,
  start,
  text,
  valuesOf
} from "../bus.ts"

/** Fails as long as it is told to. */
const failing = (settings: { readonly cluster?: string; readonly deadLetter?: DeadLetter.DeadLetter } = {}) => {
  const handled: Array<string> = []
  const failure = { isOn: true }
  const binding = Binding.make("orders", {
    ...orders,
    ...settings,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 minute"] }),
    handler: ({ value }) => (failure.isOn ? Effect.fail("no") : Effect.sync(() => handled.push(value))),
    onError: () => Route.deadLetter()
  })
  return { binding, handled, failure }
}

describe("dead letters of a binding", () => {
  scenario("DLT-23 a count or a time that makes no sense is refused, and nothing is replayed, listed or purged", () =>
    Effect.gen(function* () {
      const { createTopic } = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders")
      const { binding } = failing()
      const { connector } = yield* start(binding)
      yield* publish("orders", ["a", "b"])
      yield* settle
      const letters = yield* connector.deadLetters("orders")
      const refused: Array<Effect.Effect<unknown, { readonly _tag: string; readonly message: string }>> = [
        ...[-1, 1.5, Number.NaN, Number.NEGATIVE_INFINITY, 2 ** 60].flatMap((count) => [
          letters.replay(count),
          letters.replayToTier(1, count),
          letters.list({ partition: 0, count })
        ]),
        ...[letters.replayWindow(Number.NaN, 1), letters.replayWindow(0, Number.NaN), letters.purge(Number.NaN)]
      ]
      for (const command of refused) {
        const error = yield* Effect.flip(inTime(command))
        assert.strictEqual(error._tag, "InvalidArgument")
      }
      const error = yield* Effect.flip(inTime(letters.replay(-1)))
      assert.strictEqual(
        error.message,
        "replay: count is -1, expected a whole number of 0 or more, or Infinity. Nothing was done."
      )
      assert.deepInclude({ ...(yield* inTime(letters.stats)) }, { count: 2, stored: 2 })
      assert.deepInclude(yield* inTime(letters.replay(0)), { replayed: 0 })
      assert.deepInclude(yield* inTime(letters.replay(Number.POSITIVE_INFINITY)), { replayed: 2 })
    })
  )

  scenario("OPS-01 no command joins a group, nor does the depth or a trail", () =>
    Effect.gen(function* () {
      const { broker, createTopic } = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders")
      const { binding } = failing()
      const joined: Array<string> = []
      const watched: Broker.Broker["Service"] = {
        ...broker,
        consumer: (options) =>
          Effect.andThen(
            Effect.sync(() => joined.push(options.groupId)),
            broker.consumer(options)
          )
      }
      const { connector } = yield* Effect.provideService(start(binding), Broker.Broker, watched)
      yield* publish("orders", ["a", "b", "c", "d", "e"])
      yield* settle
      const letters = yield* connector.deadLetters("orders")
      assert.deepStrictEqual(yield* deadLetterDepth, [5])
      assert.strictEqual((yield* inTime(letters.replay(1))).replayed, 1)
      assert.strictEqual((yield* inTime(letters.replayToTier(1, 1))).replayed, 1)
      const third = { partition: 0, offset: 2n }
      assert.strictEqual((yield* inTime(letters.replayRecords([third]))).replayed, 1)
      assert.strictEqual(yield* inTime(letters.discard([{ ...third, offset: 3n }], "a duplicate")), 1)
      assert.strictEqual((yield* inTime(letters.discarded)).length, 1)
      const listed = yield* inTime(letters.list({ partition: 0, count: 5 }))
      assert.deepStrictEqual(
        listed.map(({ state }) => state),
        ["dealt-with", "dealt-with", "dealt-with", "dealt-with", "waiting"]
      )
      const trail = Trail.trail(orders, { partition: 0, offset: 4n })
      const hops = yield* inTime(Effect.provideService(trail, Broker.Broker, watched))
      assert.deepStrictEqual(
        hops.map(({ kind }) => kind),
        ["main", "dead-letter"]
      )
      assert.isAbove((yield* inTime(letters.replayWindow(0, Number.MAX_SAFE_INTEGER))).replayed, 0)
      assert.isAbove(yield* inTime(letters.purge(Number.POSITIVE_INFINITY)), 4)
      assert.deepStrictEqual(joined, ["billing"])
    })
  )

  scenario("DLT-23 DLT-30 statistics, a replay, and the remaining records", () =>
    Effect.gen(function* () {
      const { createTopic } = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders")
      const { binding, handled, failure } = failing()
      const { connector } = yield* start(binding)
      yield* publish("orders", ["a", "b", "c"])
      yield* settle
      const letters = yield* connector.deadLetters("orders")
      assert.deepInclude({ ...(yield* inTime(letters.stats)) }, { count: 3, stored: 3 })
      failure.isOn = false
      assert.deepStrictEqual(yield* inTime(letters.replay(2)), {
        replayed: 2,
        passedOver: 0,
        refused: 0,
        foreign: new Map(),
        unreadable: 0
      })
      yield* settle
      assert.deepStrictEqual(handled, ["a", "b"])
      assert.deepInclude({ ...(yield* inTime(letters.stats)) }, { count: 1, stored: 3 })
      const listed = yield* inTime(letters.list({ partition: 0, count: 10 }))
      assert.deepStrictEqual(
        listed.map(({ letter, state }) => `${text(letter.record.value)} ${state}`),
        ["a dealt-with", "b dealt-with", "c waiting"]
      )
    })
  )

  scenario(
    "DLT-24 DLT-25 DLT-29 DLT-31 dead letters are replayed by time, to a tier and by hand, discarded, and purged",
    () =>
      Effect.gen(function* () {
        const { createTopic } = yield* MemoryBroker.MemoryBroker
        yield* createTopic("orders")
        const { binding, handled, failure } = failing()
        const { connector } = yield* start(binding)
        yield* publish("orders", ["a", "b", "c", "d"])
        yield* settle
        const letters = yield* connector.deadLetters("default:orders")
        failure.isOn = false
        assert.strictEqual(yield* inTime(letters.discard([{ partition: 0, offset: 3n }], "a test order")), 1)
        assert.deepStrictEqual(
          (yield* inTime(letters.discarded)).map(({ offset, reason }) => `${offset} ${reason}`),
          ["3 a test order"]
        )
        assert.deepInclude(yield* inTime(letters.replayRecords([{ partition: 0, offset: 1n }])), { replayed: 1 })
        yield* settle
        assert.deepStrictEqual(handled, ["b"])
        assert.deepInclude(yield* inTime(letters.replayToTier(1, 1)), { replayed: 1 })
        assert.deepStrictEqual(yield* valuesOf("orders.retry-1"), ["a"])
        const refusal = yield* Effect.flip(letters.replayToTier(2, 1))
        assert.include(refusal.message, "tiers 1 to 1")
        assert.deepInclude(yield* inTime(letters.replayWindow(0, Number.MAX_SAFE_INTEGER)), { replayed: 1 })
        yield* settle
        assert.deepStrictEqual(handled, ["b", "c"])
        assert.strictEqual(yield* inTime(letters.purge(Number.MAX_SAFE_INTEGER)), 4)
        assert.deepInclude({ ...(yield* inTime(letters.stats)) }, { count: 0, stored: 0 })
      })
  )

  scenario("ERR-17 an operator reads a dead letter, replays it, or discards it with an entry that says why", () =>
    Effect.gen(function* () {
      const { createTopic } = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders")
      const { binding, handled, failure } = failing()
      const { connector } = yield* start(binding)
      yield* publish("orders", ["a", "b"])
      yield* settle
      failure.isOn = false
      const letters = yield* connector.deadLetters("orders")
      const read = yield* inTime(letters.list({ partition: 0, count: 10 }))
      assert.deepStrictEqual(
        read.map(({ letter }) => [text(letter.record.value), letter.originalTopic, letter.originalOffset]),
        [
          ["a", "orders", 0n],
          ["b", "orders", 1n]
        ]
      )
      assert.deepInclude(yield* inTime(letters.replayRecords([{ partition: 0, offset: 0n }])), { replayed: 1 })
      yield* settle
      assert.deepStrictEqual(yield* valuesOf("orders"), ["a", "b", "a"])
      assert.deepStrictEqual(handled, ["a"])
      const before = yield* now
      assert.strictEqual(yield* inTime(letters.discard([{ partition: 0, offset: 1n }], "ann: the customer is gone")), 1)
      const [entry, ...others] = yield* inTime(letters.discarded)
      assert.deepStrictEqual(others, [])
      assert.deepInclude(entry, {
        groupId: "billing",
        partition: 0,
        offset: "1",
        reason: "ann: the customer is gone",
        originalTopic: "orders",
        originalOffset: "1"
      })
      assert.isAtLeast(entry!.discardedAt, before)
      // For good: neither a replay of all nor one by hand takes it again.
      assert.deepInclude(yield* inTime(letters.replay(10)), { replayed: 0 })
      assert.deepInclude(yield* inTime(letters.replayRecords([{ partition: 0, offset: 1n }])), { replayed: 0 })
      yield* settle
      assert.deepStrictEqual(handled, ["a"])
    })
  )

  scenario("DLT-21 DLT-26 ruling 30 a record that fails again is replayed at most three times, and stays", () =>
    Effect.gen(function* () {
      const { createTopic, log } = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders")
      const { binding } = failing()
      const { connector } = yield* start(binding)
      yield* publish("orders", ["a"])
      yield* settle
      const letters = yield* connector.deadLetters("orders")
      for (let round = 1; round <= 3; round++) {
        assert.deepInclude(yield* inTime(letters.replay(10)), { replayed: 1, passedOver: 0 })
        yield* settle
      }
      assert.deepStrictEqual(yield* inTime(letters.replay(10)), {
        replayed: 0,
        passedOver: 1,
        refused: 0,
        foreign: new Map(),
        unreadable: 0
      })
      const records = yield* log("orders.DLT", 0)
      assert.strictEqual(headersOf(records.at(-1)).get("x-eventbus-replay-count"), "3")
    })
  )

  scenario("LIF-02 commands work on dead letters of a stopped binding; an unknown binding is refused", () =>
    Effect.gen(function* () {
      const { createTopic } = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders")
      const { binding } = failing({ deadLetter: DeadLetter.scheduledReplay({ maxReplays: 0 }) })
      const { connector } = yield* start(binding)
      yield* append("orders", 0, ["a"])
      yield* settle
      yield* inTime(connector.stop("orders"))
      const letters = yield* connector.deadLetters("orders")
      assert.deepStrictEqual(yield* inTime(letters.replay(1)), {
        replayed: 0,
        passedOver: 1,
        refused: 0,
        foreign: new Map(),
        unreadable: 0
      })
      assert.strictEqual((yield* Effect.flip(connector.deadLetters("nobody")))._tag, "BindingNotFound")
    })
  )

  it.effect("MUL-03 dead letters are replayed on the cluster of their binding", () =>
    Effect.gen(function* () {
      const [east, west] = [yield* MemoryBroker.make(), yield* MemoryBroker.make()]
      for (const { createTopic } of [east, west]) yield* createTopic("orders")
      const { binding, handled, failure } = failing({ cluster: "west" })
      const clusters = Clusters.layer({
        default: Layer.succeed(Broker.Broker, east.broker),
        west: Layer.succeed(Broker.Broker, west.broker)
      })
      const { connector } = yield* Effect.provide(start(binding), clusters)
      yield* west.append("orders", 0, [{ value: new TextEncoder().encode("a") }])
      yield* settle
      failure.isOn = false
      const { replay } = yield* connector.deadLetters("orders")
      assert.deepInclude(yield* inTime(replay(1)), { replayed: 1 })
      yield* settle
      assert.deepStrictEqual(handled, ["a"])
      assert.strictEqual(yield* east.partitionCount("orders.DLT.replays"), 0)
    })
  )
})
