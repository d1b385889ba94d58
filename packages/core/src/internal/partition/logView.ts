/**
 * The log behind one assigned partition, as far as it is known: its end, how far it is fetched, and the open transaction or the gap that keeps records away.
 *
 * Fetched chunks and the lag poller tell it. An end never moves back within an assignment: a fetch under `read_committed` knows less of the log than the poller.
 */
import type { RecordChunk } from "../../Broker.ts"

/** Offsets that retention took. */
interface Gap {
  readonly from: bigint
  readonly to: bigint
}

export class LogView {
  /** One past the last offset of the log, as far as is known. */
  end: bigint
  /** The part of the end that the assignment and the fetches tell. They know which topic they read; the poller knows its name alone, which a new topic may have by then. */
  fetchedEnd: bigint
  /** The next offset to fetch: behind all chunks that were taken. */
  fetchedTo: bigint
  /** Chunks that a fetch has brought so far. */
  chunksTaken = 0
  /** How long the cluster has had records that no fetch brings, although nothing pauses the partition. Written by the lag poller. */
  unfetchedMillis: number | undefined
  /** An open transaction holds the partition at this offset. */
  openTransaction: { readonly offset: bigint; readonly sinceMillis: number } | undefined
  /** Gaps with unfinished records in front of them. */
  #gaps: ReadonlyArray<Gap> = []

  constructor(position: bigint, end: bigint) {
    this.fetchedTo = position
    this.end = end
    this.fetchedEnd = end
  }

  /** Offsets between the position and the end (default: the last known one), without those that are gone. Never negative. */
  lag(position: bigint, end: bigint = this.end): bigint {
    let lag = end - position
    for (const { from, to } of this.#gaps) if (to > position) lag -= to - (from > position ? from : position)
    return lag > 0n ? lag : 0n
  }

  took({ nextOffset, highWatermark }: RecordChunk): void {
    this.chunksTaken++
    this.unfetchedMillis = undefined
    this.fetchedTo = nextOffset
    this.sawEnd(highWatermark)
    if (highWatermark > this.fetchedEnd) this.fetchedEnd = highWatermark
    if (this.openTransaction !== undefined && nextOffset > this.openTransaction.offset) this.openTransaction = undefined
  }

  sawEnd(end: bigint): void {
    if (end > this.end) this.end = end
  }

  /** Under `read_committed`, records behind the end that can be read belong to an open transaction, or wait behind one. */
  sawReadableEnd(readable: bigint, end: bigint, nowMillis: number): void {
    if (readable >= end || this.fetchedTo < readable) this.openTransaction = undefined
    else if (this.openTransaction?.offset !== readable) {
      this.openTransaction = { offset: readable, sinceMillis: nowMillis }
    }
  }

  /** These offsets are gone: no fetch brings them. */
  skipGap(gap: Gap, position: bigint): void {
    this.#gaps = [...this.#gaps.filter(({ to }) => to > position), gap]
    this.sawEnd(gap.to)
  }
}
