/** A unit whose retry topics deliver before the scheduler of its followers is there. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { Entry } from "../../src/internal/order/entry.ts"
import { ParkedRoom } from "../../src/internal/order/parkedRoom.ts"
import { Unit } from "../../src/internal/order/unit.ts"
import type { UnitOptions } from "../../src/internal/order/unitOptions.ts"

const key = new TextEncoder().encode("a")

describe("unit", () => {
  it.effect("PKO-01 a key that drains before the unit has started is handed to the scheduler that comes", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const main = { stopping: false, position: () => 0n }
      const definition = { perKey: {} }
      const options = {
        main,
        tiers: [],
        bodies: { bytes: 0, most: 0 },
        parkedRoom: new ParkedRoom(10),
        definition,
        clock,
        elapsedMillis: () => 0
      }
      const unit = new Unit(options as unknown as UnitOptions, [])
      const entry = new Entry("a", key, 3n, 1, 1, 0)
      entry.kind = "retry"
      entry.evictedFrom = 4n
      unit.table.add(entry)
      // Its record was delivered from the retry topic.
      unit.drain(entry)
      const taken: Array<string> = []
      unit.onDrain = (drains) => void taken.push(drains.key)
      unit.start()
      assert.deepStrictEqual(taken, ["a"])
    })
  )
})
