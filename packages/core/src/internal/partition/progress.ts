/**
 * How long a position has not moved although records wait behind it, by the looks at it. The hot path pays nothing for that.
 */
export interface Progress {
  /** Notes where the position is now, and whether records wait behind it. Answers how long it has not moved, in milliseconds. */
  readonly look: (position: bigint, waits: boolean, nowMillis: number) => number
}

export const make = (): Progress => {
  let seen: bigint | undefined
  let sinceMillis = 0
  return {
    look: (position, waits, nowMillis) => {
      // A wait starts again when the clock was set back.
      if (!waits || position !== seen || nowMillis < sinceMillis) sinceMillis = nowMillis
      seen = position
      return nowMillis - sinceMillis
    }
  }
}
