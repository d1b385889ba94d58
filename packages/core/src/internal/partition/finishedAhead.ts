/**
 * The offsets behind a committed one that are finished already, as text for the commit's metadata: in a topic whose records become due one by one, the next owner does
 * not repeat those that were handled before a longer wait in front of them.
 *
 * `{offset}:{bits}`: the committed offset, and one bit for each offset from there on, 1 where it is finished, in base64. The offset binds the bits: those of another
 * commit, or of a bridge that translated the offset, say nothing.
 */
/** The widest span whose text fits in Kafka's `offset.metadata.max.bytes` (4096), with the other fields of the metadata. */
export const mostOffsets = 23_000

/** `unfinished`: the offsets from `position` up to `end` that are not finished, in order. Undefined when nothing behind them is finished. */
export const format = (position: bigint, end: bigint, unfinished: ReadonlyArray<bigint>): string | undefined => {
  const length = Math.min(mostOffsets, Number(end - position))
  if (length <= unfinished.length) return undefined
  const bits = new Uint8Array(Math.ceil(length / 8)).fill(0xff)
  if (length % 8 !== 0) bits[bits.length - 1] = (1 << (length % 8)) - 1
  for (const offset of unfinished) {
    const index = Number(offset - position)
    if (index < length) bits[index >> 3]! &= ~(1 << (index & 7))
  }
  return `${position}:${btoa(String.fromCharCode(...bits))}`
}

export interface FinishedAhead {
  readonly has: (offset: bigint) => boolean
  /** One past the last offset that it knows of. */
  readonly end: bigint
}

/** Undefined for text that is not about this committed offset, and for a log that ends before what was finished: it is not the same log any more. */
export const parse = (text: string | undefined, committed: bigint, logEnd: bigint): FinishedAhead | undefined => {
  const [offset, encoded] = text?.split(":") ?? []
  if (encoded === undefined || offset !== String(committed)) return undefined
  const bits = decode(encoded)
  if (bits === undefined) return undefined
  const end = committed + BigInt(lengthOf(bits))
  if (bits.length * 8 > mostOffsets + 7 || end > logEnd) return undefined
  return {
    end,
    has: (asked) => {
      const index = Number(asked - committed)
      return index >= 0 && index < bits.length * 8 && (bits[index >> 3]! & (1 << (index & 7))) !== 0
    }
  }
}

const decode = (encoded: string): Uint8Array | undefined => {
  try {
    return Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

/** Up to the last bit that is set. */
const lengthOf = (bits: Uint8Array): number => {
  let length = bits.length * 8
  while (length > 0 && (bits[(length - 1) >> 3]! & (1 << ((length - 1) & 7))) === 0) length--
  return length
}
