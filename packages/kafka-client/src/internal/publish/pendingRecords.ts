/** The records of one producer that are not settled yet: counts them, and opens latches when the first comes and when the last is settled. */
import { type BrokerError, type ConsumerRecord, ProducerClock } from "@eventbus/core"
import * as Latch from "effect/Latch"
import { type EncodedRecord, encodeRecord, type HeaderEncoder } from "../batch/encodedRecord.ts"
import type { CodecName } from "../codec/codecNames.ts"
import type { PendingRecord } from "./partitionLog.ts"

/** Called once with the outcome of a record. `index` is the record's index among those that were sent in one call. */
export type OnSettled = (outcome: ConsumerRecord.RecordMetadata | BrokerError.BrokerError, index: number) => void

export class PendingRecords {
  /** Open while no record is pending. */
  readonly drained = Latch.makeUnsafe(true)
  /** Open while a record is pending. */
  readonly busy = Latch.makeUnsafe(false)
  readonly #codec: CodecName
  readonly clock = new ProducerClock.ProducerClock()
  #count = 0

  /** `codec`: that of records which name none. */
  constructor(codec: CodecName = "none") {
    this.#codec = codec
  }

  /** Encodes a record and counts it as pending. */
  add(
    record: ConsumerRecord.ProducerRecord,
    deliveryTimeoutMillis: number,
    onSettled: OnSettled,
    index: number,
    encode: HeaderEncoder | undefined
  ): TrackedRecord {
    const now = Date.now()
    const encoded = encodeRecord(record, now, encode, this.clock.correctionMillis(record.topic, now), this.#codec)
    const pending = new TrackedRecord(this, encoded, now + deliveryTimeoutMillis, onSettled, index)
    this.#count += 1
    if (this.#count > 1) return pending
    this.drained.closeUnsafe()
    this.busy.openUnsafe()
    return pending
  }

  /** One record is settled. */
  remove(): void {
    this.#count -= 1
    if (this.#count > 0) return
    this.drained.openUnsafe()
    this.busy.closeUnsafe()
  }
}

/** One pending record. An instance of one class without a closure of its own, because one is made for each record that is published. */
export class TrackedRecord implements PendingRecord {
  readonly record: EncodedRecord
  readonly deadline: number
  settled = false
  readonly #all: PendingRecords
  readonly #onSettled: OnSettled
  readonly #index: number

  constructor(all: PendingRecords, record: EncodedRecord, deadline: number, onSettled: OnSettled, index: number) {
    this.record = record
    this.deadline = deadline
    this.#all = all
    this.#onSettled = onSettled
    this.#index = index
  }

  get bytes(): number {
    return this.record.bytes
  }

  succeed(metadata: ConsumerRecord.RecordMetadata): void {
    this.#settle(metadata)
  }

  fail(error: BrokerError.BrokerError): void {
    this.#settle(error)
  }

  /** The caller waits no longer. The record is not sent any more, if it was not sent yet. */
  cancel(): void {
    if (this.settled) return
    this.settled = true
    this.#all.remove()
  }

  #settle(outcome: ConsumerRecord.RecordMetadata | BrokerError.BrokerError): void {
    if (this.settled) return
    this.cancel()
    this.#onSettled(outcome, this.#index)
  }
}
