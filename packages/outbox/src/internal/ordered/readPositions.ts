/**
 * What an ordered relay has read of each bucket and which aggregates are held back: pure bookkeeping, no effects.
 *
 * A bucket is read forward from a cursor. An aggregate with a failed event is held back: its rows are passed by, and when its retry
 * is due, the cursor goes back to the failed event, so that memory holds one entry per such aggregate and not its backlog. Rows that
 * are read twice by going back are recognised by the caller's set of events in flight.
 */
import type { BucketCursor } from "./bucketReads.ts"

/** Something that waits for its time: an aggregate behind its failed event, or that event alone. */
interface Waiting {
  readonly bucket: number
  readonly seq: number
  readonly dueNanos: bigint
}

export interface ReadPositions {
  readonly cursors: (buckets: Iterable<number>) => ReadonlyArray<BucketCursor>
  /** Rows up to this sequence number of the bucket have been dealt with. */
  readonly advance: (bucket: number, seq: number) => void
  /** Reads a bucket from its start again: rows may have become pending behind the cursor. */
  readonly rewind: (bucket: number) => void
  readonly forget: (bucket: number) => void
  readonly wait: (key: string, waiting: Waiting) => void
  readonly isWaiting: (key: string) => boolean
  /** Ends what is due: the cursors go back to it. Only between two reads, or rows of one aggregate could pass each other. */
  readonly wakeDue: (nowNanos: bigint) => boolean
  /** When the next one is due. */
  readonly nextDue: () => bigint | undefined
  readonly waitingCount: () => number
}

export const makeReadPositions = (): ReadPositions => {
  const positions = new Map<number, number>()
  const waiting = new Map<string, Waiting>()
  return {
    cursors: (buckets) => [...buckets].map((bucket) => ({ bucket, afterSeq: positions.get(bucket) ?? 0 })),
    advance: (bucket, seq) => void positions.set(bucket, Math.max(seq, positions.get(bucket) ?? 0)),
    rewind: (bucket) => void positions.delete(bucket),
    forget: (bucket) => {
      positions.delete(bucket)
      for (const [key, entry] of waiting) if (entry.bucket === bucket) waiting.delete(key)
    },
    wait: (key, entry) => void waiting.set(key, entry),
    isWaiting: (key) => waiting.has(key),
    wakeDue: (nowNanos) => {
      let woken = false
      for (const [key, { bucket, seq, dueNanos }] of waiting) {
        if (dueNanos > nowNanos) continue
        waiting.delete(key)
        positions.set(bucket, Math.min(seq - 1, positions.get(bucket) ?? 0))
        woken = true
      }
      return woken
    },
    nextDue: () => {
      let next: bigint | undefined
      for (const { dueNanos } of waiting.values()) if (next === undefined || dueNanos < next) next = dueNanos
      return next
    },
    waitingCount: () => waiting.size
  }
}
