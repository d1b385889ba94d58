/**
 * Partitions that a record halted (`onExhausted: "halt"`). A halt survives rebalances; resuming the binding ends it.
 */
import * as Effect from "effect/Effect"
import type { Partition } from "../partition/partition.ts"

export interface Halts {
  readonly add: (partition: Partition) => Effect.Effect<void>
  /** Whether the partition is still at the record that halted it. Another consumer may have settled that record meanwhile. */
  readonly isStillHalted: (partition: Partition) => boolean
  readonly remove: (partition: Partition) => void
  readonly clear: () => void
}

export const make = (): Halts => {
  const offsets = new Map<string, bigint>()
  return {
    add: (partition) => Effect.sync(() => offsets.set(partition.key, partition.position())),
    isStillHalted: (partition) => offsets.get(partition.key) === partition.position(),
    remove: (partition) => offsets.delete(partition.key),
    clear: () => offsets.clear()
  }
}
