/** The wall clock is set back while keys are parked: their locks move as they would have. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, headersOf, start, until } from "../bus.ts"
import { withWallClock } from "../wallClock.ts"
import { keyed, locks, publishKeyed } from "./keys.ts"

const hour = 3_600_000

const ready = Effect.flatMap(MemoryBroker.MemoryBroker, (memory) => memory.createTopic("orders"))

const seconds = (count: number) => Effect.forEach(Array.from({ length: count }), () => advance("1 second"))

const kinds = Effect.map(locks, (all) => all.map((lock) => headersOf(lock).get("x-eventbus-order-kind")))

describe("order per key, and a clock that is set back", () => {
  withWallClock("PKO-02 a key with a backlog notes what is done within some seconds", (set) =>
    Effect.gen(function* () {
      yield* ready
      set(hour)
      const takes = { a2: 4_000, a3: 4_000, a4: 4_000, a5: 4_000 }
      const { binding, handled } = keyed({ fails: { a1: 1 }, takes })
      yield* start(binding)
      yield* publishKeyed("a1", "a2", "a3", "a4", "a5")
      yield* until(() => handled.length === 1, "1 second")
      set(0)
      yield* seconds(9)
      assert.deepStrictEqual(
        [handled, yield* kinds],
        [
          ["a1", "a2", "a3"],
          ["retry", "next"]
        ]
      )
    })
  )

  withWallClock("PKO-03 a held key that keeps others from leaving their retry topic moves out of their way", (set) =>
    Effect.gen(function* () {
      yield* ready
      set(hour)
      const { binding, handled } = keyed({ wrong: ["a1"], fails: { b1: 1 }, perKey: { onDeadLetter: "hold" } })
      yield* start(binding)
      yield* publishKeyed("a1", "b1")
      yield* seconds(2)
      set(0)
      yield* seconds(25)
      assert.deepStrictEqual([handled, yield* kinds], [["b1"], ["held", "retry", "held"]])
    })
  )
})
