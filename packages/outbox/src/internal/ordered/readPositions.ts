/**
 * The read position of each bucket, and the aggregates that are held back. Pure state, no effects.
 *
 * A bucket is read forward from its position. The rows of a held-back aggregate are skipped. When the retry of its failed event is due,
 * the position goes back to that event. So memory holds one entry per held-back aggregate, and not its backlog. Going back reads some
 * rows twice; the caller recognises those by its events in flight.
 */
import type { BucketCursor } from "./bucketReads.ts"

/** A held-back aggregate behind its failed event, or a failed event that is passed over. */
interface Delayed {
  readonly bucket: number
  readonly seq: number
  readonly dueNanos: bigint
}

export interface ReadPositions {
  /** Where to read on in each of the buckets. */
  readonly cursors: (buckets: Iterable<number>) => ReadonlyArray<BucketCursor>
  /** Moves the bucket's position forward to this sequence number. */
  readonly advance: (bucket: number, seq: number) => void
  /** Reads a bucket from its start again: rows may have become pending behind the position. */
  readonly rewind: (bucket: number) => void
  /** Drops everything known of a bucket. */
  readonly forget: (bucket: number) => void
  /** Holds back an aggregate or a single event, by key, until it is due. */
  readonly delay: (key: string, delayed: Delayed) => void
  readonly isDelayed: (key: string) => boolean
  /**
   * Ends the delays that are due and moves the positions back to them; returns whether there were any. Call it only between two reads:
   * during a read, rows of one aggregate could overtake each other.
   */
  readonly resumeDue: (nowNanos: bigint) => boolean
  /** When the next delay ends; undefined when there is none. */
  readonly nextDue: () => bigint | undefined
  readonly delayedCount: () => number
}

export const makeReadPositions = (): ReadPositions => {
  const positions = new Map<number, number>()
  const delayed = new Map<string, Delayed>()
  return {
    cursors: (buckets) => [...buckets].map((bucket) => ({ bucket, afterSeq: positions.get(bucket) ?? 0 })),
    advance: (bucket, seq) => void positions.set(bucket, Math.max(seq, positions.get(bucket) ?? 0)),
    rewind: (bucket) => void positions.delete(bucket),
    forget: (bucket) => {
      positions.delete(bucket)
      for (const [key, entry] of delayed) if (entry.bucket === bucket) delayed.delete(key)
    },
    delay: (key, entry) => void delayed.set(key, entry),
    isDelayed: (key) => delayed.has(key),
    resumeDue: (nowNanos) => {
      let resumed = false
      for (const [key, { bucket, seq, dueNanos }] of delayed) {
        if (dueNanos > nowNanos) continue
        delayed.delete(key)
        positions.set(bucket, Math.min(seq - 1, positions.get(bucket) ?? 0))
        resumed = true
      }
      return resumed
    },
    nextDue: () => {
      let next: bigint | undefined
      for (const { dueNanos } of delayed.values()) if (next === undefined || dueNanos < next) next = dueNanos
      return next
    },
    delayedCount: () => delayed.size
  }
}
