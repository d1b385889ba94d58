/**
 * The only source of random numbers of a simulated run (xorshift128): equal seeds draw equal numbers.
 */
export interface Random {
  /** From 0 inclusive to 1 exclusive. */
  readonly next: () => number
  /** A whole number from `from` to `to`, both inclusive. */
  readonly between: (from: number, to: number) => number
  readonly pick: <A>(values: readonly [A, ...ReadonlyArray<A>]) => A
  /** Picks by weight. The weights may have any sum. */
  readonly weighted: <A>(choices: readonly [readonly [number, A], ...ReadonlyArray<readonly [number, A]>]) => A
  readonly happens: (probability: number) => boolean
}

export const make = (seed: number): Random => {
  let x = (seed ^ 0x9e3779b9) >>> 0 || 1
  let y = Math.imul(x, 0x85ebca6b) >>> 0 || 2
  let z = Math.imul(y, 0xc2b2ae35) >>> 0 || 3
  let w = Math.imul(z, 0x27d4eb2f) >>> 0 || 4
  const next = (): number => {
    const t = x ^ (x << 11)
    x = y
    y = z
    z = w
    w = (w ^ (w >>> 19) ^ t ^ (t >>> 8)) >>> 0
    return w / 0x1_0000_0000
  }
  // Neighbouring seeds start alike and diverge within a few draws.
  for (let i = 0; i < 16; i++) next()
  const between = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1))
  return {
    next,
    between,
    pick: (values) => values[Math.floor(next() * values.length)] ?? values[0],
    weighted: (choices) => {
      let rest = next() * choices.reduce((sum, [weight]) => sum + weight, 0)
      for (const [weight, choice] of choices) {
        rest -= weight
        if (rest < 0) return choice
      }
      return choices[0][1]
    },
    happens: (probability) => next() < probability
  }
}
