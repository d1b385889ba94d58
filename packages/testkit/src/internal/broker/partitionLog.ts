/**
 * One partition: records in offset order, log start, log end, and what transactions hide.
 *
 * Control markers and compacted records are holes: they take an offset and have no record.
 */
import { Adapter, type ConsumerRecord } from "@eventbus/core"

type Stored = ConsumerRecord.ConsumerRecord
type Isolation = "read_committed" | "read_uncommitted"

/** Shared by all records of a transaction; its `state` decides whether they can be read. */
export interface TransactionMark {
  state: "open" | "committed" | "aborted"
}

/** A record before it has an offset. */
export interface NewRecord {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: ReadonlyArray<ConsumerRecord.Header>
  readonly timestamp: number
  readonly timestampType?: Stored["timestampType"]
  /** The codec of its batch. The model keeps the name and compresses nothing. */
  readonly compression?: ConsumerRecord.Compression | undefined
}

/** The producer's sequence number of the first record in a batch; the others follow. */
export interface BatchSequence {
  readonly producerId: number
  readonly first: number
}

interface LastBatch {
  readonly firstSequence: number
  readonly lastSequence: number
  readonly firstOffset: bigint
}

export interface ReadLimits {
  readonly maxBytes: number
  readonly maxRecords: number
  /** The largest record of a compressed batch that a reader decompresses. Default: any. */
  readonly maxRecordBytes?: number
  readonly isolation: Isolation
}

interface ReadResult {
  readonly records: ReadonlyArray<Stored>
  readonly nextOffset: bigint
  readonly bytes: number
  /** The record at `nextOffset`, when the reader cannot decompress it. */
  readonly unreadable?: Stored | undefined
}

/** Size of a record's key, value and headers in bytes. */
export const recordBytes = (record: Pick<NewRecord, "key" | "value" | "headers">): number => {
  let bytes = (record.key?.length ?? 0) + (record.value?.length ?? 0)
  for (const header of record.headers) bytes += header.key.length + (header.value?.length ?? 0)
  return bytes
}

/** The headers of a copy count by themselves, so that a copy can be read wherever its source was. */
const isLargerThan = (record: Stored, maxBytes: number): boolean => {
  const bytes = recordBytes(record)
  if (bytes <= maxBytes) return false
  const own = { ...record, headers: record.headers.filter(({ key }) => !Adapter.isCopyHeader(key)) }
  return bytes > maxBytes + Adapter.maxCopyHeaderBytes || recordBytes(own) > maxBytes
}

/** Whether the record is in a compressed batch. */
export const isCompressed = ({ compression = "none" }: Pick<NewRecord, "compression">): boolean =>
  compression !== "none"

export class PartitionLog {
  readonly topic: string
  readonly partition: number
  logStart: bigint
  logEnd: bigint
  /** Called after every change that may let a waiting fetch continue. */
  readonly watchers = new Set<() => void>()
  private records: Array<Stored> = []
  private readonly marks = new Map<Stored, TransactionMark>()
  private readonly openSince = new Map<TransactionMark, bigint>()
  private readonly lastBatches = new Map<number, LastBatch>()

  constructor(topic: string, partition: number, firstOffset: bigint) {
    this.topic = topic
    this.partition = partition
    this.logStart = firstOffset
    this.logEnd = firstOffset
  }

  /** One past the last offset that a reader of this isolation level can see. */
  readableEnd(isolation: Isolation): bigint {
    if (isolation === "read_uncommitted") return this.logEnd
    let end = this.logEnd
    for (const since of this.openSince.values()) if (since < end) end = since
    return end
  }

  /** Appends a batch and returns the offset of its first record. A batch that the producer has sent before is not written again. */
  append(batch: ReadonlyArray<NewRecord>, sequence?: BatchSequence, mark?: TransactionMark): bigint {
    const known = sequence && this.lastBatches.get(sequence.producerId)
    if (known && sequence.first <= known.lastSequence) {
      return known.firstOffset + BigInt(sequence.first - known.firstSequence)
    }
    const firstOffset = this.logEnd
    if (mark && !this.openSince.has(mark)) this.openSince.set(mark, firstOffset)
    for (const input of batch) {
      const record: Stored = {
        topic: this.topic,
        partition: this.partition,
        offset: this.logEnd,
        timestamp: input.timestamp,
        key: input.key,
        value: input.value,
        headers: input.headers,
        transactional: mark !== undefined,
        ...(input.timestampType === undefined ? {} : { timestampType: input.timestampType }),
        ...(isCompressed(input) ? { compression: input.compression } : {})
      }
      this.records.push(record)
      if (mark) this.marks.set(record, mark)
      this.logEnd += 1n
    }
    if (sequence) {
      this.lastBatches.set(sequence.producerId, {
        firstSequence: sequence.first,
        lastSequence: sequence.first + batch.length - 1,
        firstOffset
      })
    }
    this.wake()
    return firstOffset
  }

  /** Takes an offset without a record, as transaction markers do. */
  appendControl(count = 1): void {
    this.logEnd += BigInt(count)
    this.wake()
  }

  /** Ends a transaction in this partition: its marker takes an offset, and its records become readable or stay hidden. */
  endTransaction(mark: TransactionMark): void {
    if (!this.openSince.delete(mark)) return
    if (mark.state === "committed") {
      for (const [record, owner] of this.marks) if (owner === mark) this.marks.delete(record)
    }
    this.appendControl()
  }

  /** Reads from a position; undefined when the position does not exist. */
  read(position: bigint, limits: ReadLimits): ReadResult | undefined {
    if (position < this.logStart || position > this.logEnd) return undefined
    const end = this.readableEnd(limits.isolation)
    if (position >= end) return { records: [], nextOffset: position, bytes: 0 }
    const from = this.indexOf(position)
    const { maxRecordBytes = Number.POSITIVE_INFINITY } = limits
    const isTooLarge = (record: Stored) => isCompressed(record) && isLargerThan(record, maxRecordBytes)
    let to = from
    let bytes = 0
    while (to < this.records.length && this.records[to]!.offset < end && to - from < limits.maxRecords) {
      const size = recordBytes(this.records[to]!)
      if (isTooLarge(this.records[to]!)) break
      // As in Kafka, the first record is returned even when it exceeds the limit; otherwise the reader could never get past it.
      if (to > from && bytes + size > limits.maxBytes) break
      bytes += size
      to++
    }
    const next = this.records[to]
    const cut = next !== undefined && next.offset < end
    const unreadable = cut && isTooLarge(next) ? next : undefined
    const nextOffset = unreadable?.offset ?? (cut ? this.records[to - 1]!.offset + 1n : end)
    const slice = this.records.slice(from, to)
    const records =
      this.marks.size === 0 || limits.isolation === "read_uncommitted" ? slice : slice.filter(this.visible)
    // As a client counts them: records of aborted transactions have no bytes.
    return { records, nextOffset, bytes: records.length === 0 ? 0 : bytes, unreadable }
  }

  /** Moves the log start up to `before` and removes the records below it. */
  deleteBefore(before: bigint): void {
    if (before <= this.logStart) return
    for (const record of this.records.splice(0, this.indexOf(before))) this.marks.delete(record)
    this.logStart = before
    this.wake()
  }

  /** Removes single records and keeps their offsets, as compaction does. */
  compact(remove: (record: Stored) => boolean): void {
    this.records = this.records.filter((record) => {
      const gone = remove(record)
      if (gone) this.marks.delete(record)
      return !gone
    })
    this.wake()
  }

  /** The first offset with a timestamp at or after `timestamp`; the log end when there is none. */
  offsetAt(timestamp: number): bigint {
    return this.records.find((record) => record.timestamp >= timestamp)?.offset ?? this.logEnd
  }

  /** Every record that a reader of this isolation level gets, oldest first. */
  snapshot(isolation: Isolation): ReadonlyArray<Stored> {
    const end = this.readableEnd(isolation)
    return this.records.filter(
      (record) => record.offset < end && (isolation === "read_uncommitted" || this.visible(record))
    )
  }

  wake(): void {
    for (const watcher of this.watchers) watcher()
  }

  private readonly visible = (record: Stored): boolean => this.marks.get(record)?.state !== "aborted"

  /** Index of the first record at or after an offset. Offsets are dense unless there are holes, so the guess is mostly right. */
  private indexOf(offset: bigint): number {
    const records = this.records
    if (records.length === 0 || offset <= records[0]!.offset) return 0
    const guess = Number(offset - records[0]!.offset)
    if (guess < records.length && records[guess]!.offset === offset) return guess
    let low = 0
    let high = Math.min(guess, records.length)
    while (low < high) {
      const middle = (low + high) >>> 1
      if (records[middle]!.offset < offset) low = middle + 1
      else high = middle
    }
    return low
  }
}
