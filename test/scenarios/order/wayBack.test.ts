/** From `PER_KEY` back to `RELAXED_IN_RETRY`, and from RELAXED to PER_KEY: nothing is lost, and what is parked goes on in order. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, scenario, start } from "../bus.ts"
import { committed, orders, publish } from "./orders.ts"

describe("the way between PER_KEY and RELAXED_IN_RETRY", () => {
  for (const order of ["partition", "key"] as const) {
    scenario(`PKO-08 ${order}: RELAXED serves parked keys in order, and parks no others`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const before = orders({ order, fails: { a1: 9 } })
        const first = yield* start(before.binding)
        yield* publish([
          ["a", "a1"],
          ["a", "a2"]
        ])
        yield* advance("1 second")
        yield* first.close
        const relaxed = orders({ order, orderingMode: "RELAXED_IN_RETRY", fails: { b1: 1 } })
        const second = yield* start(relaxed.binding)
        yield* publish([
          ["b", "b1"],
          ["b", "b2"],
          ["a", "a3"]
        ])
        yield* advance("2 seconds")
        assert.deepStrictEqual(relaxed.handled, ["b2"])
        yield* advance("10 seconds")
        assert.deepStrictEqual(
          relaxed.handled.filter((value) => value.startsWith("a")),
          ["a1", "a2", "a3"]
        )
        assert.include(relaxed.handled, "b1")
        // A restart finds no parked key: the commits say so from then on.
        yield* second.close
        const third = yield* start(orders({ order, orderingMode: "RELAXED_IN_RETRY" }).binding)
        yield* publish([["c", "c1"]])
        yield* advance("12 seconds")
        yield* third.close
        for (const { metadata } of yield* committed) assert.notInclude(metadata, "epoch")
      })
    )

    scenario(`PKO-08 ${order}: copies from RELAXED finish without order under PER_KEY`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const relaxed = orders({ order, orderingMode: "RELAXED_IN_RETRY", fails: { a1: 9 } })
        const first = yield* start(relaxed.binding)
        yield* publish([
          ["a", "a1"],
          ["a", "a2"]
        ])
        yield* advance("1 second")
        yield* first.close
        const after = orders({ order })
        yield* start(after.binding)
        yield* advance("11 seconds")
        assert.deepStrictEqual([relaxed.handled, after.handled], [["a2"], ["a1"]])
      })
    )
  }
})
