/** `orderingMode: "PER_KEY"`: what follows a record that waits in a retry topic is handled behind it, and the records of other keys do not wait. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, scenario, start } from "../bus.ts"
import { committed, type Given, orders, publish } from "./orders.ts"

const setUp = (given: Given) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* memory.createTopic("orders")
    const { binding, handled } = orders(given)
    const app = yield* start(binding)
    return { app, handled, memory }
  })

describe("order per key", () => {
  for (const order of ["partition", "key"] as const) {
    scenario(`PKO-01 PKO-03 ${order}: followers wait behind a failed record, other keys do not`, () =>
      Effect.gen(function* () {
        const { handled, memory } = yield* setUp({ order, fails: { a1: 1 } })
        yield* publish([
          ["a", "a1"],
          ["b", "b1"],
          ["a", "a2"],
          ["b", "b2"],
          ["a", "a3"]
        ])
        yield* advance("1 second")
        assert.deepStrictEqual(handled, ["b1", "b2"])
        yield* advance("10 seconds")
        assert.deepStrictEqual(handled, ["b1", "b2", "a1", "a2", "a3"])
        yield* publish([["a", "a4"]])
        yield* advance("1 second")
        assert.deepStrictEqual(handled.slice(-1), ["a4"])
        const end = (yield* memory.log("orders.retry-1", 0)).length
        const offsets = (yield* committed).map(({ topic, offset }) => [topic, offset])
        assert.deepStrictEqual(
          new Map(offsets as Array<[string, bigint]>),
          new Map([
            ["orders", 6n],
            ["orders.retry-1", BigInt(end)]
          ])
        )
      })
    )

    scenario(
      `PKO-01 PKO-07 ${order}: a follower that fails itself keeps those behind it waiting, and the lag counts them`,
      () =>
        Effect.gen(function* () {
          const { app, handled } = yield* setUp({ order, fails: { a1: 1, a2: 2 }, tiers: ["10 seconds", "60 seconds"] })
          const followers = Effect.map(app.connector.snapshot("orders"), ({ parked, partitions }) => [
            parked?.followers,
            Number(partitions.find(({ topic }) => topic === "orders")?.lag)
          ])
          yield* publish([
            ["a", "a1"],
            ["a", "a2"],
            ["a", "a3"]
          ])
          yield* advance("1 second")
          assert.deepStrictEqual(yield* followers, [2, 2])
          yield* advance("10 seconds")
          assert.deepStrictEqual(handled, ["a1"])
          // a2 is in a retry topic now, and a3 follows it.
          assert.deepStrictEqual(yield* followers, [1, 1])
          yield* publish([["a", "a4"]])
          yield* advance("11 seconds")
          assert.deepStrictEqual(handled, ["a1"])
          yield* advance("61 seconds")
          assert.deepStrictEqual(handled, ["a1", "a2", "a3", "a4"])
          assert.deepStrictEqual(yield* followers, [0, 0])
        })
    )

    scenario(`PKO-05 ${order}: behind a dead letter the key goes on`, () =>
      Effect.gen(function* () {
        const { handled, memory } = yield* setUp({ order, fails: { a1: 9 } })
        yield* publish([
          ["a", "a1"],
          ["a", "a2"]
        ])
        yield* advance("15 seconds")
        assert.deepStrictEqual(handled, ["a2"])
        assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 1)
      })
    )

    scenario(`PKO-01 ${order}: a restart handles nothing twice and leaves nothing out`, () =>
      Effect.gen(function* () {
        const { app, handled } = yield* setUp({ order, fails: { a1: 1 } })
        yield* publish([
          ["a", "a1"],
          ["b", "b1"],
          ["a", "a2"]
        ])
        yield* advance("3 seconds")
        yield* app.close
        const second = orders({ order })
        yield* start(second.binding)
        yield* advance("1 second")
        assert.deepStrictEqual([handled, second.handled], [["b1"], []])
        yield* advance("10 seconds")
        assert.deepStrictEqual(second.handled, ["a1", "a2"])
      })
    )
  }
})
