/**
 * What one producer has to write to one partition. Owns the order, and the sequence numbers that let the broker drop repetitions.
 *
 * One batch is out at a time, so a sequence number is spent only by an acknowledged batch. A batch that may have been written is
 * sent again unchanged, under the same number; when its outcome stays unknown, the partition takes a new producer id, since the
 * broker would take the next batch under that number for a repetition, and drop it.
 */
import type { BrokerError, ConsumerRecord } from "@eventbus/core"
import type { Outgoing } from "../batch/outgoing.ts"

/** A record on its way. */
export interface Pending {
  readonly record: Outgoing
  readonly bytes: number
  /** Epoch milliseconds at which it fails. */
  readonly deadline: number
  settled: boolean
  readonly succeed: (metadata: ConsumerRecord.RecordMetadata) => void
  readonly fail: (error: BrokerError.BrokerError) => void
}

export interface Batch {
  readonly records: ReadonlyArray<Pending>
  /** True once it was sent without a clear answer. */
  maybeWritten: boolean
}

/** The id under which the broker recognises repetitions. */
export interface Identity {
  readonly producerId: bigint
  readonly producerEpoch: number
}

const maxSequence = 0x7fffffff

const isOpen = ({ settled }: Pending): boolean => !settled

export class PartitionLog {
  readonly topic: string
  readonly partition: number
  /** Grows with every batch that is taken out, over all partitions: who waits longest is next. Written by the sender. */
  turn = 0
  identity: Identity | undefined
  /** The id that must not be used again. */
  spent: Identity | undefined
  #sequence = 0
  #waiting: Array<Pending> = []
  #taken = 0
  /** Batches to send before anything else, unchanged. */
  #again: Array<Batch> = []
  #out: Batch | undefined

  constructor(topic: string, partition: number) {
    this.topic = topic
    this.partition = partition
  }

  get sequence(): number {
    return this.#sequence
  }

  /** True when a batch could be taken. */
  get ready(): boolean {
    return this.#out === undefined && (this.#again.length > 0 || this.#taken < this.#waiting.length)
  }

  get empty(): boolean {
    return this.#out === undefined && this.#again.length === 0 && this.#taken === this.#waiting.length
  }

  add(pending: Pending): void {
    this.#waiting.push(pending)
  }

  /** Takes the next batch out. Within the limits, but never nothing when there is something. */
  take(maxRecords: number, maxBytes: number): Batch | undefined {
    if (this.#out !== undefined) return undefined
    this.#letGo()
    this.#out = this.#again.shift() ?? this.#nextNew(maxRecords, maxBytes)
    return this.#out
  }

  /** Drops what nobody waits for any more. */
  #letGo(): void {
    if (this.#out !== undefined) return
    this.#again = this.#again.filter(({ records, maybeWritten }) => {
      const awaited = records.some(isOpen)
      if (!awaited && maybeWritten) this.forgetIdentity()
      return awaited
    })
    while (this.#taken < this.#waiting.length && this.#waiting[this.#taken]!.settled) this.#taken += 1
    this.#shorten()
  }

  #nextNew(maxRecords: number, maxBytes: number): Batch | undefined {
    const records: Array<Pending> = []
    let bytes = 0
    while (this.#taken < this.#waiting.length && records.length < maxRecords) {
      const next = this.#waiting[this.#taken]!
      if (!next.settled) {
        if (records.length > 0 && bytes + next.bytes > maxBytes) break
        records.push(next)
        bytes += next.bytes
      }
      this.#taken += 1
    }
    this.#shorten()
    return records.length === 0 ? undefined : { records, maybeWritten: false }
  }

  #shorten(): void {
    if (this.#taken === this.#waiting.length) {
      this.#waiting = []
      this.#taken = 0
    } else if (this.#taken > 1024 && this.#taken * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#taken)
      this.#taken = 0
    }
  }

  /** The batch that is out was written; `baseOffset` -1 when the broker recognised a repetition. */
  acknowledged(batch: Batch, baseOffset: bigint): void {
    this.#out = undefined
    this.#sequence = (this.#sequence + batch.records.length) & maxSequence
    const { topic, partition } = this
    batch.records.forEach((pending, i) => {
      pending.succeed({ topic, partition, offset: baseOffset < 0n ? -1n : baseOffset + BigInt(i) })
    })
  }

  /** The batch that is out is to be sent again. */
  again(batch: Batch, outcome: "notWritten" | "unknown"): void {
    this.#out = undefined
    if (outcome === "unknown") batch.maybeWritten = true
    this.#again.unshift(batch)
    this.#letGo()
  }

  /** The batch that is out was refused for one of its records: halves of it are sent, to find out for which. */
  split(batch: Batch): void {
    this.#out = undefined
    const middle = batch.records.length >> 1
    this.#again.unshift(
      { records: batch.records.slice(0, middle), maybeWritten: false },
      { records: batch.records.slice(middle), maybeWritten: false }
    )
  }

  /** The batch that is out will not be written. */
  failed(batch: Batch, error: BrokerError.BrokerError): void {
    this.#out = undefined
    if (batch.maybeWritten) this.forgetIdentity()
    for (const pending of batch.records) pending.fail(error)
  }

  /** Everything fails; what is out is answered for by its request, and then fails too. */
  failAll(error: BrokerError.BrokerError): void {
    for (const pending of this.#unsettled()) pending.fail(error)
    this.#letGo()
  }

  /** Fails what is too old. */
  expire(now: number, error: BrokerError.BrokerError): void {
    for (const pending of this.#unsettled()) {
      if (pending.deadline <= now) pending.fail(error)
    }
    this.#letGo()
  }

  /** Sequence numbers start anew under an id that is to be had. */
  forgetIdentity(): void {
    this.spent = this.identity ?? this.spent
    this.identity = undefined
    this.#sequence = 0
  }

  *#unsettled(): Iterable<Pending> {
    for (const batch of this.#out === undefined ? this.#again : [this.#out, ...this.#again]) yield* batch.records
    for (let i = this.#taken; i < this.#waiting.length; i++) yield this.#waiting[i]!
  }
}
