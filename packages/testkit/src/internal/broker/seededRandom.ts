/**
 * The only source of random numbers of an in-memory broker: mulberry32, so that a seed decides a whole run.
 */
export interface SeededRandom {
  /** From 0 inclusive to 1 exclusive. */
  readonly next: () => number
  /** A whole number from 0 inclusive to `bound` exclusive. */
  readonly below: (bound: number) => number
  /** Undefined for an empty list. */
  readonly pick: <A>(values: ReadonlyArray<A>) => A | undefined
}

export const make = (seed: number): SeededRandom => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000
  }
  const below = (bound: number): number => Math.floor(next() * bound)
  return { next, below, pick: (values) => values[below(values.length)] }
}
