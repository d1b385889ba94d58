/**
 * How many keys are parked in the units of one or more consumers, and since when.
 */
import type { OldestHeldKey, ParkedCounts } from "../../Snapshot.ts"
import type { Entry } from "./entry.ts"
import type { Unit } from "./unit.ts"

export const of = (units: ReadonlyArray<Unit>): ParkedCounts => {
  let [waiting, draining, held, followers] = [0, 0, 0, 0]
  let oldestSinceMillis: number | undefined
  let oldestHeld: OldestHeldKey | undefined
  for (const unit of units) {
    followers += unit.table.followers
    for (const entry of unit.table.values()) {
      if (entry.isGone) continue
      if (entry.isHeld) {
        held++
        if (oldestHeld === undefined || entry.sinceMillis < oldestHeld.sinceMillis) oldestHeld = heldOf(unit, entry)
      } else if (entry.isDraining) draining++
      else waiting++
      if (oldestSinceMillis === undefined || entry.sinceMillis < oldestSinceMillis) {
        oldestSinceMillis = entry.sinceMillis
      }
    }
  }
  return { waiting, draining, held, followers, oldestSinceMillis, oldestHeld }
}

const heldOf = ({ options: { main } }: Unit, { offset, sinceMillis }: Entry): OldestHeldKey => {
  const { topic, partition } = main
  return { topic, partition, offset, sinceMillis }
}
