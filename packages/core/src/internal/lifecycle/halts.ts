/**
 * Partitions that a record halted (`onExhausted: "halt"`), over rebalances, until the binding is resumed. Owns their offsets.
 */
import { Effect } from "effect"
import type { Partition } from "../partition/partition.ts"

export interface Halts {
  readonly add: (partition: Partition) => Effect.Effect<void>
  /** Whether a partition that was just assigned is still at the record that halted it: somebody else may have settled that meanwhile. */
  readonly hold: (partition: Partition) => boolean
  readonly clear: () => void
}

export const make = (): Halts => {
  const offsets = new Map<string, bigint>()
  return {
    add: (partition) => Effect.sync(() => offsets.set(partition.key, partition.position())),
    hold: (partition) => {
      if (offsets.get(partition.key) === partition.position()) return true
      offsets.delete(partition.key)
      return false
    },
    clear: () => offsets.clear()
  }
}
