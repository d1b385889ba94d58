/**
 * Which records of one assignment are still in flight, and so which offset may be committed (rulings 3 and 4).
 *
 * Records begin in offset order and finish in any order; only the contiguous finished prefix moves the position. Owned by
 * one assignment: a late result of an older one holds another tracker and has nothing here that it could move.
 */
import type { ConsumerRecord } from "../../ConsumerRecord.ts"

export interface OffsetTracker {
  /** Registers the next record in offset order as in flight; returns its sequence (monotonic sequence number). */
  readonly begin: (record: ConsumerRecord) => number
  /** Marks a slot finished (handled, routed with acknowledgement, skipped). Idempotent. */
  readonly finish: (sequence: number) => void
  /** All records of a chunk have begun; the position may move to `nextOffset` once they are finished (covers compaction gaps and control records). */
  readonly endOfChunk: (nextOffset: bigint) => void
  /** Offset of the first unfinished record, or the position behind everything finished: what may be committed. */
  readonly position: () => bigint
  /** The first record that has begun and is not finished. */
  readonly oldest: () => ConsumerRecord | undefined
  /** Records that have begun and are not finished. */
  readonly inFlight: () => number
  /** Slots from the first unfinished to the last begun: what memory is bounded by. */
  readonly span: () => number
  /** The span has reached the limit: the caller stops beginning records (back-pressure, never failure). */
  readonly isFull: () => boolean
}

const initialCapacity = 64

/**
 * `maxSpan` (default 10 000) is where `isFull` turns true. It does not make `begin` refuse: a caller that goes on costs memory,
 * never a record.
 */
export const make = (startPosition: bigint, options?: { readonly maxSpan?: number }): OffsetTracker => {
  const maxSpan = options?.maxSpan ?? 10_000
  // A ring indexed by slot modulo capacity (a power of two). A finished slot is undefined, which also frees its record.
  let ring = new Array<ConsumerRecord | undefined>(initialCapacity).fill(undefined)
  let mask = initialCapacity - 1
  let first = 0
  let next = 0
  let inFlight = 0
  let end = startPosition
  let lastBegun: ConsumerRecord | undefined

  const grow = () => {
    const larger = new Array<ConsumerRecord | undefined>(ring.length * 2).fill(undefined)
    const largerMask = larger.length - 1
    for (let sequence = first; sequence < next; sequence++) larger[sequence & largerMask] = ring[sequence & mask]
    ring = larger
    mask = largerMask
  }

  return {
    begin: (record) => {
      if (next - first === ring.length) grow()
      ring[next & mask] = record
      lastBegun = record
      inFlight++
      return next++
    },
    finish: (sequence) => {
      if (sequence < first || sequence >= next || ring[sequence & mask] === undefined) return
      ring[sequence & mask] = undefined
      inFlight--
      while (first < next && ring[first & mask] === undefined) first++
    },
    endOfChunk: (nextOffset) => {
      if (nextOffset > end) end = nextOffset
    },
    position: () => {
      if (first < next) return ring[first & mask]!.offset
      // Offsets are read here only, since an adapter may compute them on demand.
      const behindLast = lastBegun === undefined ? end : lastBegun.offset + 1n
      return behindLast > end ? behindLast : end
    },
    oldest: () => (first < next ? ring[first & mask] : undefined),
    inFlight: () => inFlight,
    span: () => next - first,
    isFull: () => next - first >= maxSpan
  }
}
