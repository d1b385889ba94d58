/** `perKey.onDeadLetter: "hold"`: a record that would be a dead letter waits, and its key with it, for somebody who decides, or for `holdFor`. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, scenario, start, valuesOf } from "../bus.ts"
import { keyed, publishKeyed } from "./keys.ts"

const ready = Effect.flatMap(MemoryBroker.MemoryBroker, (memory) => memory.createTopic("orders"))

describe("held keys", () => {
  scenario(
    "PKO-05 a held key that is given up makes one dead letter of each record, also while its lock cannot leave",
    () =>
      Effect.gen(function* () {
        yield* ready
        const perKey = { onDeadLetter: "hold", holdFor: "5 seconds" } as const
        const { binding, handled } = keyed({ perKey, fails: { b1: 1 }, wrong: ["a1"], tiers: ["60 seconds"] })
        yield* start(binding)
        // The lock of b lies in front of that of a.
        yield* publishKeyed("b1", "a1", "a2")
        yield* advance("1 second")
        for (let second = 0; second < 20; second++) yield* advance("1 second")
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["a1", "a2"])
        yield* publishKeyed("a3")
        yield* advance("1 second")
        assert.deepStrictEqual(handled, ["a3"])
      })
  )

  scenario("PKO-05 a held record in front of which the main topic waits is given up, and not tried again", () =>
    Effect.gen(function* () {
      yield* ready
      const memory = yield* MemoryBroker.MemoryBroker
      const perKey = { onDeadLetter: "hold", holdFor: "5 seconds", maxParkedKeys: 1 } as const
      const first = keyed({ perKey, fails: { c1: 9 }, wrong: ["a1"] })
      const app = yield* start(first.binding)
      yield* publishKeyed("b1", "a1", "a2")
      yield* advance("1 second")
      yield* memory.kill("billing")
      yield* app.close
      const { binding, handled } = keyed({ perKey, wrong: ["a1"] })
      yield* start(binding)
      for (let second = 0; second < 70; second++) yield* advance("1 second")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["a1"])
      // The main topic had not come to a2 yet.
      assert.deepStrictEqual(handled, ["a2"])
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
