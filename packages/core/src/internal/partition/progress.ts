/**
 * For how long a position has not moved although something waits, as far as it was looked at. The hot path pays nothing for it.
 */
export interface Progress {
  /** Notes where the position is now, and whether there is something behind it; answers for how long it has been waiting, in milliseconds. */
  readonly look: (position: bigint, waits: boolean, nowMillis: number) => number
}

export const make = (): Progress => {
  let seen: bigint | undefined
  let sinceMillis = 0
  return {
    look: (position, waits, nowMillis) => {
      // A clock that was set back makes a wait begin anew.
      if (!waits || position !== seen || nowMillis < sinceMillis) sinceMillis = nowMillis
      seen = position
      return nowMillis - sinceMillis
    }
  }
}
