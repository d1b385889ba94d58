/** A lock whose offset its source does not have. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { LostOffsets } from "../../src/internal/order/lostOffsets.ts"
import { ParkedRoom } from "../../src/internal/order/parkedRoom.ts"
import { Unit } from "../../src/internal/order/unit.ts"
import type { UnitOptions } from "../../src/internal/order/unitOptions.ts"
import * as OrderHeaders from "../../src/internal/record/orderHeaders.ts"

const lock = { kind: "retry", offset: 5n, hop: 1, epoch: 1, next: 6n } as const

describe("lost offsets", () => {
  it.effect("PKO-09 a leader that does not know the end of its log for some seconds makes no lock false", () =>
    Effect.gen(function* () {
      const lost = new LostOffsets(yield* Clock.Clock)
      assert.isTrue(lost.has("1@0", 5n, lock))
      yield* TestClock.adjust("9 seconds")
      assert.isFalse(lost.has("1@0", 6n, lock))
    })
  )

  it.effect("PKO-09 a log that grows past the offset later has other records there", () =>
    Effect.gen(function* () {
      const lost = new LostOffsets(yield* Clock.Clock)
      assert.isTrue(lost.has("1@0", 5n, lock))
      yield* TestClock.adjust("10 seconds")
      assert.isTrue(lost.has("1@0", 6n, lock))
      assert.isFalse(lost.has("1@9", 6n, lock))
    })
  )

  it.effect("PKO-09 a lock without a record may stand at the end", () =>
    Effect.gen(function* () {
      const lost = new LostOffsets(yield* Clock.Clock)
      assert.isFalse(lost.has("1@0", 5n, { ...lock, kind: "next" }))
      assert.isTrue(lost.has("1@0", 4n, { ...lock, kind: "next" }))
    })
  )

  it.effect("PKO-09 a lock whose loss was accepted is finished: its record was dead-lettered when the unit began", () =>
    Effect.gen(function* () {
      const bond = { topic: "orders", partition: 0, clusterId: "c", topicId: undefined, groupId: "billing" }
      const options = {
        ...{ main: { stopping: false, position: () => 0n }, tiers: [{}], definition: { perKey: {} }, bond },
        ...{ bodies: { bytes: 0, most: 0 }, parkedRoom: new ParkedRoom(10), clock: yield* Clock.Clock },
        ...{ strangersTo: [8n], committer: { request: () => {} } }
      }
      const unit = new Unit(options as unknown as UnitOptions, [], [new Set([7n])])
      const record = {
        ...{ topic: "orders.retry-1", partition: 0, offset: 7n, timestamp: 0, timestampType: "CreateTime" as const },
        ...{ key: new TextEncoder().encode("a"), value: null, headers: OrderHeaders.ofLock(bond, lock) }
      }
      assert.isTrue(unit.takeTier(1, record, 0))
    })
  )
})
