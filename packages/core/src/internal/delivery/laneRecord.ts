/**
 * A record in its lane (`lanes.ts`), and what the records of a partition share while they run side by side.
 */
import * as Effect from "effect/Effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import { Undecodable } from "../record/decoding.ts"
import { awaitsPublish, type DeliveryResult } from "../record/deliveryResult.ts"
import type { Handler } from "../settings/bindingDefinition.ts"
import type { DeliveryContext } from "../slots/deliveryContext.ts"
import type { StartGate } from "../slots/startGate.ts"
import { type ConsumerContext, reportStarted } from "./consumerContext.ts"
import type * as PendingCopies from "./pendingCopies.ts"
import type { RecordInWork } from "./recordInWork.ts"

export type PerRecord<R> = Extract<Handler<R>, { readonly _tag: "PerRecord" }>

/** The records of a partition share this while they run side by side. */
export interface Shared<R> {
  readonly context: ConsumerContext<R>
  readonly handler: PerRecord<R>
  readonly partition: Partition
  readonly pendingCopies: PendingCopies.PendingCopies
  /** The sequence of the last record, in offset order, that has started. */
  lastStarted: number
  /** The sequence of the first abandoned record. */
  firstAbandoned: number
  /** Lanes whose record has not started. */
  queued: number
  /** Lets the next record begin if there is room for it. */
  readonly makeRoom: () => void
}

/** A record in its lane. A stop holds it only when no record behind it has started. */
export class LaneRecord<R> implements RecordInWork<R>, StartGate {
  readonly record: ConsumerRecord
  /** Its share of the bytes of its chunk. */
  readonly bytes: number
  readonly delivery: DeliveryContext
  readonly mayWait = true
  /** Called when the record has left for another topic. */
  onParked: () => void = () => {}
  readonly #shared: Shared<R>
  readonly #sequence: number
  readonly #receivedMillis: number
  #hasStarted = false
  #isQueued = false

  constructor(
    shared: Shared<R>,
    delivery: DeliveryContext,
    record: ConsumerRecord,
    bytes: number,
    receivedMillis: number
  ) {
    this.record = record
    this.bytes = bytes
    this.delivery = delivery
    this.#shared = shared
    this.#sequence = shared.partition.begin(record)
    this.#receivedMillis = receivedMillis
  }

  get context(): ConsumerContext<R> {
    return this.#shared.context
  }

  /** Whether the record is not to be delivered now, since its key is parked. */
  get isParked(): boolean {
    const { order } = this.partition
    return order !== undefined && !order.isQuiet && order.take(this.record, this.#sequence)
  }

  get partition(): Partition {
    return this.#shared.partition
  }

  get gate(): StartGate {
    return this
  }

  get current(): ConsumerRecord {
    return this.record
  }

  get stopping(): boolean {
    const { partition } = this.#shared
    return partition.stopping && !(partition.drainable && this.#isInPrefix)
  }

  /** Whether the finished prefix can come to cover a started record behind this one. */
  get #isInPrefix(): boolean {
    const { lastStarted, firstAbandoned } = this.#shared
    const isBefore = this.#sequence < lastStarted || this.record.offset < (this.partition.order?.freedTo ?? 0n)
    return isBefore && this.#sequence < firstAbandoned
  }

  get ending(): boolean {
    return this.partition.stopping
  }

  get open(): boolean {
    return (this.partition.open || this.partition.stopping) && !this.#waitsForCopies
  }

  /** A record that is in flight goes on: its next attempt waits for no copy. */
  get #waitsForCopies(): boolean {
    const { partition, pendingCopies } = this.#shared
    return pendingCopies.hasPending() && !this.#hasStarted && (pendingCopies.waitsForEach || partition.stopping)
  }

  get runnable(): Effect.Effect<void> {
    return this.#waitsForCopies ? this.#shared.pendingCopies.settled : this.partition.runnable
  }

  onStop(listener: () => void): () => void {
    return this.partition.onStop(listener)
  }

  attempt(isFirst: boolean): Effect.Effect<unknown, unknown, R> {
    return this.delivery.admit(this, () => {
      if (isFirst) this.#onStarted()
      const invoked = this.#shared.handler.invoke(this.record, this.context.receiver, this.#receivedMillis)
      return invoked instanceof Undecodable ? Effect.fail(invoked) : invoked
    })
  }

  /** It is the first of its lane. */
  queue(): void {
    this.#isQueued = true
    this.#shared.queued++
  }

  /** It has started, or is settled without a start. */
  leaveQueue(): void {
    if (!this.#isQueued) return
    this.#isQueued = false
    this.#shared.queued--
    this.#shared.makeRoom()
  }

  #onStarted(): void {
    const shared = this.#shared
    this.#hasStarted = true
    this.leaveQueue()
    shared.lastStarted = Math.max(shared.lastStarted, this.#sequence)
    reportStarted(shared.context, shared.partition, this.record)
  }

  settle(result: DeliveryResult): boolean | Effect.Effect<boolean> {
    const { context, partition, pendingCopies } = this.#shared
    if (awaitsPublish(result)) {
      const added = pendingCopies.add(this.record, this.#sequence, result)
      // In this step: a record of the key that comes now follows behind those that are queued.
      this.onParked()
      return added
    }
    if (!pendingCopies.finish(this.record, this.#sequence, result)) return false
    if (context.definition.ackMode === "MANUAL_IMMEDIATE") context.committer.hasten(partition)
    else context.committer.mark(partition)
    return true
  }

  giveUp(): void {
    this.#shared.firstAbandoned = Math.min(this.#shared.firstAbandoned, this.#sequence)
  }
}
