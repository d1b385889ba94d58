/**
 * The fetched range of one partition: hands over the records that a consumer of an isolation level sees, chunk by chunk. No chunk holds much more than its
 * bound, however well the records were compressed.
 */
import type { Broker, ConsumerRecord } from "@eventbus/core"
import { batchesOf, type FetchedBatch, isAbortMarker, isControl, isTransactional } from "../batch/fetchedBatch.ts"
import { RecordReader, type RecordTarget } from "../batch/recordReader.ts"
import { UnreadableBatch } from "../batch/UnreadableBatch.ts"
import { pieceBytes } from "../codec/decompress.ts"
import type { FetchedPartition } from "../protocol/apis.ts"

export interface RangeBounds {
  /** The most decompressed bytes of a chunk, beside the record that begins in its last piece and ends in the next one. */
  readonly chunkBytes: number
  /** The largest record of a compressed batch that is decompressed. */
  readonly maxRecordBytes: number
}

/** Part of the visible records of one partition. */
export interface Visible {
  readonly records: ReadonlyArray<ConsumerRecord.ConsumerRecord>
  /** The position after them. */
  readonly nextOffset: bigint
  /** Decompressed bytes of the records; 0 when there are none. */
  readonly bytes: number
  /** The batch at `nextOffset`, if it cannot be read. Then nothing follows. */
  readonly unreadable: UnreadableBatch | undefined
}

/** The port's report of a batch at `offset` that cannot be read. */
export const reportOf = (
  { facts, message, problem }: UnreadableBatch,
  { topic, partition }: ConsumerRecord.TopicPartition,
  offset: bigint
): Broker.UnreadableBatch => ({
  ...{ topic, partition, offset, codec: facts.codec, records: facts.count },
  ...{ lastOffset: facts.lastOffset ?? offset, problem, detail: message }
})

/** Small chunks, since one may follow a pause, and the next costs no request. */
const maxUnpackedBytes = 512 * 1024

type Isolation = "read_committed" | "read_uncommitted"

export class FetchedRange {
  /** One past the last offset that a client of this isolation can read, as known when the range was fetched. */
  readonly visibleEnd: bigint
  readonly #fetched: FetchedPartition
  readonly #bounds: RangeBounds
  /** A chunk ends here, so that the piece which fills it stays within the bound. */
  readonly #enoughBytes: number
  readonly #batches: Generator<FetchedBatch, void>
  /** Aborted transactions that begin behind what was read, in order. */
  readonly #upcoming: Array<FetchedPartition["abortedTransactions"][number]>
  readonly #aborted = new Set<bigint>()
  /** The batch that is being read. */
  #open: RecordReader | undefined
  #nextOffset: bigint
  /** Bytes of this chunk that were compressed. The broker's answer bounds the others. */
  #unpackedBytes = 0
  #isDone = false

  /**
   * `position`: the offset that was fetched. Under `read_committed` no records of aborted transactions are visible. The broker names those that touch the
   * fetched range, and sends nothing from the first open transaction on. Control records are never visible.
   */
  constructor(fetched: FetchedPartition, position: bigint, isolation: Isolation, bounds: RangeBounds) {
    this.visibleEnd = isolation === "read_committed" ? fetched.lastStableOffset : fetched.highWatermark
    this.#fetched = fetched
    this.#bounds = bounds
    this.#enoughBytes = Math.max(1, Math.min(bounds.chunkBytes, maxUnpackedBytes) - pieceBytes)
    this.#batches = batchesOf(fetched.bytes, fetched.highWatermark)
    this.#upcoming =
      isolation === "read_committed"
        ? [...fetched.abortedTransactions].sort((a, b) => (a.firstOffset < b.firstOffset ? -1 : 1))
        : []
    this.#nextOffset = position
  }

  /** Whether everything was handed over. */
  get isDone(): boolean {
    return this.#isDone
  }

  /** The next records. Empty where the range has none for this consumer. */
  async next(): Promise<Visible> {
    const target: RecordTarget = { records: [], from: this.#nextOffset, bytes: 0 }
    this.#unpackedBytes = 0
    let unreadable: UnreadableBatch | undefined
    try {
      while (!this.#isDone && this.#unpackedBytes < this.#enoughBytes) await this.#read(target)
    } catch (error) {
      if (!(error instanceof UnreadableBatch)) throw error
      unreadable = error
      this.#advance(this.#open?.nextOffset)
      this.close()
    }
    return { records: target.records, nextOffset: this.#nextOffset, bytes: target.bytes, unreadable }
  }

  #advance(offset: bigint | undefined): void {
    if (offset !== undefined && offset > this.#nextOffset) this.#nextOffset = offset
  }

  /** Reads one batch, or as much of it as fits. */
  async #read(target: RecordTarget): Promise<void> {
    const open = this.#open
    const before = target.bytes
    if (open !== undefined) {
      await open.readOn(target, this.#enoughBytes - this.#unpackedBytes)
      this.#unpackedBytes += target.bytes - before
      this.#advance(open.nextOffset)
      if (open.isDone) this.#open = undefined
      return
    }
    const next = this.#batches.next()
    if (next.done === true) {
      this.#isDone = true
      return
    }
    const batch = next.value
    if (this.#isVisible(batch)) {
      this.#open = new RecordReader(batch, this.#fetched, this.#bounds.maxRecordBytes)
      if (!this.#open.readSmall(target)) return
      if (this.#open.isCompressed) this.#unpackedBytes += target.bytes - before
      this.#open = undefined
    }
    this.#advance(batch.lastOffset + 1n)
  }

  #isVisible(batch: FetchedBatch): boolean {
    const [upcoming, aborted] = [this.#upcoming, this.#aborted]
    while (upcoming.length > 0 && upcoming[0]!.firstOffset <= batch.lastOffset)
      aborted.add(upcoming.shift()!.producerId)
    if (!isControl(batch)) return !(isTransactional(batch) && aborted.has(batch.producerId))
    if (aborted.size > 0 && batch.count > 0 && isAbortMarker(batch)) aborted.delete(batch.producerId)
    return false
  }

  /** Frees what it holds. Nothing follows. */
  close(): void {
    this.#isDone = true
    this.#open?.close()
    this.#open = undefined
  }
}
