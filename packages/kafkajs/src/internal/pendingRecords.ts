/** Counts the records that are on their way, and tells when there are none. */
import type { BrokerError, ConsumerRecord } from "@eventbus/core"
import { Latch } from "effect"
import { type HeaderEncoder, outgoing } from "./outgoing.ts"
import type { Pending } from "./partitionLog.ts"

export type Done = (outcome: ConsumerRecord.RecordMetadata | BrokerError.BrokerError) => void

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
    encode: HeaderEncoder | undefined
  ): Pending {
    const now = Date.now()
    const out = outgoing(record, now, encode)
    const settle: Done = (outcome) => {
      if (pending.settled) return
      this.giveUp(pending)
      done(outcome)
    }
    const pending: Pending = {
      record: out,
      bytes: out.bytes,
      deadline: now + deliveryTimeoutMillis,
      settled: false,
      succeed: settle,
      fail: settle
    }
    this.#open += 1
    this.drained.closeUnsafe()
    this.busy.openUnsafe()
    return pending
  }

  /** Settles a record that nobody waits for any more. */
  giveUp(pending: Pending): void {
    if (pending.settled) return
    pending.settled = true
    this.#open -= 1
    if (this.#open > 0) return
    this.drained.openUnsafe()
    this.busy.closeUnsafe()
  }
}
