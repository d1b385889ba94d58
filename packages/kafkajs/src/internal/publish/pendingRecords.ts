/** Counts the records that are on their way, and tells when there are none. */
import type { BrokerError, ConsumerRecord } from "@eventbus/core"
import { Latch } from "effect"
import { type HeaderEncoder, type Outgoing, outgoing } from "../batch/outgoing.ts"
import type { Pending } from "./partitionLog.ts"

/** Told what became of a record; `index` is its place among those that came in one go. */
export type Done = (outcome: ConsumerRecord.RecordMetadata | BrokerError.BrokerError, index: number) => void

export class PendingRecords {
  /** Open while nothing is on its way. */
  readonly drained = Latch.makeUnsafe(true)
  /** Open while something is. */
  readonly busy = Latch.makeUnsafe(false)
  #open = 0

  /** Takes a record in; `done` is called when it is settled. */
  add(
    record: ConsumerRecord.ProducerRecord,
    deliveryTimeoutMillis: number,
    done: Done,
    index: number,
    encode: HeaderEncoder | undefined
  ): PendingRecord {
    const now = Date.now()
    const pending = new PendingRecord(this, outgoing(record, now, encode), now + deliveryTimeoutMillis, done, index)
    this.#open += 1
    if (this.#open > 1) return pending
    this.drained.closeUnsafe()
    this.busy.openUnsafe()
    return pending
  }

  /** One of them is settled. */
  leave(): void {
    this.#open -= 1
    if (this.#open > 0) return
    this.drained.openUnsafe()
    this.busy.closeUnsafe()
  }
}

/** An object of one shape for each record, and no function of its own: that is what is made most often where records are published. */
export class PendingRecord implements Pending {
  readonly record: Outgoing
  readonly deadline: number
  settled = false
  readonly #all: PendingRecords
  readonly #done: Done
  readonly #index: number

  constructor(all: PendingRecords, record: Outgoing, deadline: number, done: Done, index: number) {
    this.record = record
    this.deadline = deadline
    this.#all = all
    this.#done = done
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

  /** Nobody waits for it any more. */
  giveUp(): void {
    if (this.settled) return
    this.settled = true
    this.#all.leave()
  }

  #settle(outcome: ConsumerRecord.RecordMetadata | BrokerError.BrokerError): void {
    if (this.settled) return
    this.giveUp()
    this.#done(outcome, this.#index)
  }
}
