/**
 * The time of the cluster as a process knows it: the append time of the newest record that it has read, and what its monotonic clock has counted since. The wall clocks of
 * processes may be hours off; this process's own one counts only until it has read a record that is new.
 */
import type * as Clock from "effect/Clock"
import * as Clocks from "../base/clocks.ts"

export interface ClusterClock {
  /** The newest record of a topic that is written all the time was appended then. */
  readonly newest: (appendedMillis: number | undefined) => void
  /** A record was appended then, and it may be long ago. */
  readonly atLeast: (appendedMillis: number | undefined) => void
  /** Takes a time that no record contradicts, and none confirms. */
  readonly believe: (millis: number) => void
  /** Epoch milliseconds. */
  readonly nowMillis: () => number
  /** The time that the newest record proves; `-Infinity` before there was one. */
  readonly provenMillis: () => number
}

export const make = (clock: Clock.Clock): ClusterClock => {
  const elapsedMillis = Clocks.stopwatch(clock)
  let certain: number | undefined
  let proven = Number.NEGATIVE_INFINITY
  let least = Number.NEGATIVE_INFINITY
  return {
    newest: (appendedMillis) => {
      if (appendedMillis === undefined) return
      certain = appendedMillis - elapsedMillis()
      proven = certain
    },
    atLeast: (appendedMillis) => {
      if (appendedMillis !== undefined) least = Math.max(least, appendedMillis - elapsedMillis())
    },
    believe: (millis) => {
      certain = millis - elapsedMillis()
    },
    provenMillis: () => proven + elapsedMillis(),
    nowMillis: () =>
      certain === undefined
        ? Math.max(clock.currentTimeMillisUnsafe(), least + elapsedMillis())
        : Math.max(certain, least) + elapsedMillis()
  }
}
