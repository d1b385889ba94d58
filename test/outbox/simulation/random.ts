/** A seeded source of chance (mulberry32). */
export interface Random {
  readonly next: () => number
  readonly chance: (probability: number) => boolean
  readonly below: (bound: number) => number
}

export const makeRandom = (seed: number): Random => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  return { next, chance: (p) => next() < p, below: (bound) => Math.floor(next() * bound) }
}
