/** The room that the keys of a unit take, when it ends. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Entry } from "../../src/internal/order/entry.ts"
import { KeyTable } from "../../src/internal/order/keyTable.ts"
import { ParkedRoom } from "../../src/internal/order/parkedRoom.ts"
import type { Partition } from "../../src/internal/partition/partition.ts"

const entryOf = (key: string, offset: bigint) => new Entry(key, new TextEncoder().encode(key), offset, 1, 1, 0)

describe("keys of a unit that ends", () => {
  it.effect(
    "PKO-06 take no room any more, also where a record that waited for room parks its key as the unit ends",
    () =>
      Effect.gen(function* () {
        const parkedRoom = new ParkedRoom(1)
        const main = { position: () => 0n } as unknown as Partition
        const table = new KeyTable({ main, bodies: { bytes: 0, most: 0 }, parkedRoom })
        table.add(entryOf("a", 1n))
        assert.isFalse(parkedRoom.isOpen)
        // The room wakes whoever waits for it at once.
        yield* Effect.forkChild(
          Effect.tap(table.room, () => Effect.sync(() => table.add(entryOf("b", 2n)))),
          { startImmediately: true }
        )
        table.end()
        yield* Effect.yieldNow
        assert.strictEqual(table.size, 2)
        assert.isTrue(parkedRoom.isOpen)
      })
  )
})
