/** The memory of a key whose record waits for an operator. */
import { assert, describe, it } from "@effect/vitest"
import type { ConsumerRecord } from "@eventbus/core"
import { Clock, Effect } from "effect"
import { Entry } from "../../src/internal/order/entry.ts"
import { ParkedRoom } from "../../src/internal/order/parkedRoom.ts"
import { Unit } from "../../src/internal/order/unit.ts"
import type { UnitOptions } from "../../src/internal/order/unitOptions.ts"

/** The bytes of all arrays that are reached from a value. */
const bytesBehind = (value: unknown, seen = new Set<unknown>()): number => {
  if (typeof value !== "object" || value === null || seen.has(value)) return 0
  seen.add(value)
  if (ArrayBuffer.isView(value)) return value.buffer.byteLength
  return Object.values(value).reduce((sum: number, each) => sum + bytesBehind(each, seen), 0)
}

const record = (key: Uint8Array): ConsumerRecord.ConsumerRecord => ({
  ...{ topic: "orders.retry-1", partition: 0, offset: 7n, timestamp: 0, timestampType: "CreateTime" },
  ...{ key, value: new Uint8Array(1_000_000), headers: [{ key: "trace", value: new Uint8Array(10_000) }] }
})

describe("held keys", () => {
  it.effect("PKO-06 a key that is held keeps no body in memory, however long it waits", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const key = new TextEncoder().encode("a")
      const options = {
        ...{ main: { stopping: false, position: () => 0n }, tiers: [], definition: { perKey: {} }, clock },
        ...{ bodies: { bytes: 0, most: 0 }, parkedRoom: new ParkedRoom(10), elapsedMillis: () => 0 }
      }
      const unit = new Unit(options as unknown as UnitOptions, [])
      const entry = new Entry("a", key, 3n, 1, 1, 0)
      entry.kind = "held"
      unit.table.add(entry)
      unit.heldKeys.hold(entry, record(key))
      assert.strictEqual(bytesBehind(entry), 1)
      assert.isTrue(entry.isHeld)
    })
  )
})
