/**
 * The records that one producer has to write to one partition. Owns their order, and the sequence numbers by which the broker drops duplicates.
 *
 * One batch is in flight at a time, so only an acknowledged batch uses up sequence numbers. A batch that may have been written is sent again unchanged,
 * under the same number. When its outcome stays unknown, the partition takes a new producer id: under the old one the broker would take the next batch
 * for a duplicate and drop it.
 */
import type { BrokerError, ConsumerRecord } from "@eventbus/core"
import type { EncodedRecord } from "../batch/encodedRecord.ts"

/** A record that is not settled yet. */
export interface PendingRecord {
  readonly record: EncodedRecord
  readonly bytes: number
  /** Epoch milliseconds at which it fails. */
  readonly deadline: number
  settled: boolean
  readonly succeed: (metadata: ConsumerRecord.RecordMetadata) => void
  readonly fail: (error: BrokerError.BrokerError) => void
}

export interface Batch {
  readonly records: ReadonlyArray<PendingRecord>
  /** True once it was sent without a clear answer. */
  maybeWritten: boolean
}

/** The id under which the broker recognises duplicates. */
export interface Identity {
  readonly producerId: bigint
  readonly producerEpoch: number
}

const maxSequence = 0x7fffffff

const isOpen = ({ settled }: PendingRecord): boolean => !settled

export class PartitionLog {
  readonly topic: string
  readonly partition: number
  /** Number of the last batch that was taken, counted over all partitions: the partition with the smallest is served next. Written by the sender. */
  lastTaken = 0
  #identity: Identity | undefined
  /** The last id that must not be used again. */
  retiredIdentity: Identity | undefined
  #sequence = 0
  #waiting: Array<PendingRecord> = []
  /** Index of the first record of `#waiting` that is in no batch yet. */
  #head = 0
  /** Batches to send again, unchanged, before anything else. */
  #resends: Array<Batch> = []
  #inFlight: Batch | undefined

  constructor(topic: string, partition: number) {
    this.topic = topic
    this.partition = partition
  }

  /** The id of the next batch; undefined when it needs a new one. */
  get identity(): Identity | undefined {
    return this.#identity
  }

  /** Sequence number of the next batch. */
  get sequence(): number {
    return this.#sequence
  }

  /** True when a batch can be taken. */
  get ready(): boolean {
    return this.#inFlight === undefined && (this.#resends.length > 0 || this.#head < this.#waiting.length)
  }

  get empty(): boolean {
    return this.#inFlight === undefined && this.#resends.length === 0 && this.#head === this.#waiting.length
  }

  add(pending: PendingRecord): void {
    this.#waiting.push(pending)
  }

  /**
   * Takes the next batch, which is in flight then. Its records have one codec. It stays within the limits, but holds at least one record when there is
   * one.
   */
  take(maxRecords: number, maxBytes: number): Batch | undefined {
    if (this.#inFlight !== undefined) return undefined
    this.#dropSettled()
    this.#inFlight = this.#resends.shift() ?? this.#nextNew(maxRecords, maxBytes)
    return this.#inFlight
  }

  /** Drops records that no caller waits for. */
  #dropSettled(): void {
    if (this.#inFlight !== undefined) return
    this.#resends = this.#resends.filter(({ records, maybeWritten }) => {
      const awaited = records.some(isOpen)
      if (!awaited && maybeWritten) this.retireIdentity()
      return awaited
    })
    while (this.#head < this.#waiting.length && this.#waiting[this.#head]!.settled) this.#head += 1
    this.#shorten()
  }

  #nextNew(maxRecords: number, maxBytes: number): Batch | undefined {
    const records: Array<PendingRecord> = []
    let bytes = 0
    while (this.#head < this.#waiting.length && records.length < maxRecords) {
      const next = this.#waiting[this.#head]!
      if (!next.settled) {
        if (records.length > 0 && (bytes + next.bytes > maxBytes || next.record.codec !== records[0]!.record.codec))
          break
        records.push(next)
        bytes += next.bytes
      }
      this.#head += 1
    }
    this.#shorten()
    return records.length === 0 ? undefined : { records, maybeWritten: false }
  }

  #shorten(): void {
    if (this.#head === this.#waiting.length) {
      this.#waiting = []
      this.#head = 0
    } else if (this.#head > 1024 && this.#head * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#head)
      this.#head = 0
    }
  }

  /** The batch in flight was written. `baseOffset` is -1 when the broker recognised a duplicate. */
  acknowledged(batch: Batch, baseOffset: bigint): void {
    this.#inFlight = undefined
    this.#sequence = (this.#sequence + batch.records.length) & maxSequence
    const { topic, partition } = this
    batch.records.forEach((pending, i) => {
      pending.succeed({ topic, partition, offset: baseOffset < 0n ? -1n : baseOffset + BigInt(i) })
    })
  }

  /** Nobody knows how far the request of a batch came. It is sent again unchanged, unless its answer has been applied. */
  abandoned(batch: Batch): void {
    if (this.#inFlight === batch) this.requeue(batch, "unknown")
  }

  /** The batch in flight is to be sent again. */
  requeue(batch: Batch, outcome: "notWritten" | "unknown"): void {
    this.#inFlight = undefined
    if (outcome === "unknown") batch.maybeWritten = true
    this.#resends.unshift(batch)
    this.#dropSettled()
  }

  /** The broker refused the batch in flight because of one of its records. Its halves are sent next, to find that record. */
  split(batch: Batch): void {
    this.#inFlight = undefined
    const middle = batch.records.length >> 1
    this.#resends.unshift(
      { records: batch.records.slice(0, middle), maybeWritten: false },
      { records: batch.records.slice(middle), maybeWritten: false }
    )
  }

  /** The batch in flight will not be written. */
  failed(batch: Batch, error: BrokerError.BrokerError): void {
    this.#inFlight = undefined
    if (batch.maybeWritten) this.retireIdentity()
    for (const pending of batch.records) pending.fail(error)
  }

  /** Fails all records. The batch in flight stays in flight until its request is answered. */
  failAll(error: BrokerError.BrokerError): void {
    for (const pending of this.#unsettled()) pending.fail(error)
    this.#dropSettled()
  }

  /** Fails records whose deadline (epoch milliseconds) has passed. */
  expire(now: number, error: BrokerError.BrokerError): void {
    for (const pending of this.#unsettled()) {
      if (pending.deadline <= now) pending.fail(error)
    }
    this.#dropSettled()
  }

  /** The next batches go out under this id. Sequence numbers start at 0 under a new one. */
  adoptIdentity(identity: Identity): void {
    if (identity === this.#identity) return
    this.#identity = identity
    this.#sequence = 0
  }

  /** The next batch needs a new id. */
  retireIdentity(): void {
    this.retiredIdentity = this.#identity ?? this.retiredIdentity
    this.#identity = undefined
    this.#sequence = 0
  }

  *#unsettled(): Iterable<PendingRecord> {
    const batches = this.#inFlight === undefined ? this.#resends : [this.#inFlight, ...this.#resends]
    for (const batch of batches) yield* batch.records
    for (let i = this.#head; i < this.#waiting.length; i++) yield this.#waiting[i]!
  }
}
