/**
 * Finds repetitions within blocks of 64 KiB, for the encoders of LZ4 and snappy: greedy, by a hash of four bytes. It looks less closely where little
 * repeats.
 */

/** The furthest that a match may reach back in either format without a longer encoding. */
export const blockBytes = 64 * 1024
const hashBits = 14
const minMatch = 4
/** LZ4 demands that the last match starts 12 bytes before the end of its block, and that the last 5 bytes are literals. */
const lastMatchMargin = 12
const lastLiterals = 5

/** Gets what a block consists of, in order. Positions are in the source. */
export interface MatchSink {
  /** Literals from `from` to `to`, then `length` bytes from `distance` bytes back. */
  readonly sequence: (from: number, to: number, distance: number, length: number) => void
  /** The literals at the end of the block. */
  readonly rest: (from: number, to: number) => void
}

const table = new Uint16Array(1 << hashBits)

const word = (source: Uint8Array, at: number): number =>
  source[at]! | (source[at + 1]! << 8) | (source[at + 2]! << 16) | (source[at + 3]! << 24)

/** Encodes the bytes from `from` to `to`, 64 KiB at most, as one block. */
export const findMatches = (source: Uint8Array, from: number, to: number, sink: MatchSink): void => {
  const lastStart = to - lastMatchMargin
  let literalsFrom = from
  if (lastStart > from) {
    table.fill(0)
    let at = from + 1
    let misses = 32
    while (at <= lastStart) {
      const here = word(source, at)
      const slot = Math.imul(here, 0x9e3779b1) >>> (32 - hashBits)
      const candidate = from + table[slot]!
      table[slot] = at - from
      if (candidate >= at || word(source, candidate) !== here) {
        at += misses++ >>> 5
        continue
      }
      misses = 32
      let length = minMatch
      const most = to - lastLiterals - at
      while (length < most && source[candidate + length] === source[at + length]) length++
      sink.sequence(literalsFrom, at, at - candidate, length)
      at += length
      literalsFrom = at
    }
  }
  sink.rest(literalsFrom, to)
}
