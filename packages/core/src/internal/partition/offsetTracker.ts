/**
 * Which records of one assignment are still in flight, and so which offset may be committed (rulings 3 and 4).
 *
 * Records begin in offset order and finish in any order. Only the contiguous finished prefix moves the position. Each assignment has a tracker of its own: a late
 * result of an older assignment moves nothing here.
 */
import type { ConsumerRecord } from "../../ConsumerRecord.ts"

export interface OffsetTracker {
  /** Registers the next record in offset order as in flight; returns its sequence, a number that grows by 1. */
  readonly begin: (record: ConsumerRecord) => number
  /** Marks the record of a sequence finished: handled, skipped, or replaced by an acknowledged copy. Idempotent. */
  readonly finish: (sequence: number) => void
  /** All records of a chunk have begun. The position may move to `nextOffset` once they are finished: that covers compaction gaps and control records. */
  readonly endOfChunk: (nextOffset: bigint) => void
  /** The offset that may be committed: of the first unfinished record, or behind everything that is finished. */
  readonly position: () => bigint
  /** The records that have begun and are not finished, in offset order. */
  readonly unfinished: () => ReadonlyArray<ConsumerRecord>
  /** One past the last record that has begun; undefined before the first. */
  readonly begunTo: () => bigint | undefined
  /** The first record that has begun and is not finished. */
  readonly oldest: () => ConsumerRecord | undefined
  /** The sequence of the first record that has begun and is not finished; that of the next record when all are finished. */
  readonly firstSequence: () => number
  /** Records that have begun and are not finished. */
  readonly inFlight: () => number
  /** The number of sequences from the first unfinished to the last begun: memory grows with it. */
  readonly span: () => number
  /** The span has reached the limit: the caller stops beginning records (back-pressure, never failure). */
  readonly isFull: () => boolean
}

const initialCapacity = 64

/** By default, a scheduler begins so many records from the first unfinished one on. */
export const defaultMaxSpan = 10_000

/**
 * `isFull` is true from `maxSpan` on (default `defaultMaxSpan`). `begin` never refuses: a caller that goes on costs memory, and loses no record.
 */
export const make = (startPosition: bigint, options?: { readonly maxSpan?: number | undefined }): OffsetTracker => {
  const maxSpan = options?.maxSpan ?? defaultMaxSpan
  // A ring indexed by sequence modulo capacity (a power of two). A finished entry is undefined, which also frees its record.
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
    unfinished: () => {
      const records: Array<ConsumerRecord> = []
      for (let sequence = first; sequence < next; sequence++) {
        const record = ring[sequence & mask]
        if (record !== undefined) records.push(record)
      }
      return records
    },
    begunTo: () => (lastBegun === undefined ? undefined : lastBegun.offset + 1n),
    oldest: () => (first < next ? ring[first & mask] : undefined),
    firstSequence: () => first,
    inFlight: () => inFlight,
    span: () => next - first,
    isFull: () => next - first >= maxSpan
  }
}
