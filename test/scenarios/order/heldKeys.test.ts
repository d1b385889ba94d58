/** `perKey.onDeadLetter: "hold"`: a record that would be a dead letter waits, and its key with it, for somebody who decides, or for `holdFor`. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, scenario, start, valuesOf } from "../bus.ts"
import { keyed, publishKeyed } from "./keys.ts"

const ready = Effect.flatMap(MemoryBroker.MemoryBroker, (memory) => memory.createTopic("orders"))

/** Lets time pass second by second. */
const seconds = (count: number) => Effect.forEach(Array.from({ length: count }), () => advance("1 second"))

describe("held keys", () => {
  scenario(
    "PKO-05 a held key that is given up makes one dead letter of each record, also while its lock cannot leave",
    () =>
      Effect.gen(function* () {
        yield* ready
        const { binding, handled } = keyed({
          perKey: { onDeadLetter: "hold", holdFor: "5 seconds" },
          ...{ fails: { b1: 1 }, wrong: ["a1"], takes: { b1: 30_000 }, concurrency: 2 }
        })
        yield* start(binding)
        // The lock of b stands in front of that of a while b1 is handled again.
        yield* publishKeyed("b1")
        yield* advance("31 seconds")
        yield* publishKeyed("a1", "a2")
        yield* seconds(25)
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["a1", "a2"])
        yield* publishKeyed("a3")
        yield* advance("1 second")
        assert.deepStrictEqual(handled, ["a3"])
      })
  )

  scenario("PKO-05 a held record that the main topic has not come to again is given up, and not tried again", () =>
    Effect.gen(function* () {
      yield* ready
      const memory = yield* MemoryBroker.MemoryBroker
      const perKey = { onDeadLetter: "hold", holdFor: "5 seconds", maxParkedKeys: 1 } as const
      const first = keyed({ perKey, wrong: ["a1"] })
      const app = yield* start(first.binding)
      yield* publishKeyed("b1", "a1", "a2")
      yield* advance("1 second")
      yield* app.close
      yield* memory.setCommitted("billing", "orders", 0, 0n)
      // One key is parked, and the main topic waits in front of its first record.
      const { binding, handled } = keyed({ perKey, wrong: ["a1"] })
      yield* start(binding)
      yield* seconds(20)
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["a1"])
      assert.deepStrictEqual(handled, ["b1", "a2"])
    })
  )

  for (const order of ["partition", "key"] as const) {
    scenario(`PKO-02 ${order}: what is finished behind a held lock is not handled again by the next owner`, () =>
      Effect.gen(function* () {
        yield* ready
        const perKey = { onDeadLetter: "hold" } as const
        const first = keyed({ order, perKey, fails: { "-1": 1 }, wrong: ["a1"] })
        const app = yield* start(first.binding)
        yield* publishKeyed("a1", "-1", "a2")
        yield* advance("12 seconds")
        assert.deepStrictEqual(first.handled, ["-1"])
        yield* app.close
        const { binding, handled } = keyed({ order, perKey })
        yield* start(binding)
        yield* advance("30 seconds")
        assert.deepStrictEqual(handled, [])
      })
    )
  }
})
