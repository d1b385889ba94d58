/**
 * The hot loop: one loop over records of a partition with one failure boundary around it. Per record it runs the user's effect and sets plain variables: no fiber,
 * no timer, no closure. A failure ends the loop at its record, except under `MANUAL` where only a copy has to be published: then the loop goes on behind the record at
 * once, and the copy is published meanwhile.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { OrderedPart } from "../partition/orderedPart.ts"
import type { Partition } from "../partition/partition.ts"
import { Undecodable } from "../record/decoding.ts"
import { awaitsPublish, type DeliveryResult } from "../record/deliveryResult.ts"
import { budgetMillis, type Handler } from "../settings/bindingDefinition.ts"
import { DeliveryContext } from "../slots/deliveryContext.ts"
import type { StartGate } from "../slots/startGate.ts"
import { type ConsumerContext, reportCall, reportHandledAtOnce, reportStarted } from "./consumerContext.ts"
import type { PendingCopies } from "./pendingCopies.ts"
import { afterFailure, hasCalled, replaceFailure, type Settling } from "./recordDelivery.ts"
import type { RecordInWork } from "./recordInWork.ts"

type PerRecord<R> = Extract<Handler<R>, { readonly _tag: "PerRecord" }>

/** The parts that handle the chunks of one partition. */
export interface Processor<R> {
  readonly context: ConsumerContext<R>
  readonly handler: PerRecord<R>
  readonly partition: Partition
  readonly pendingCopies: PendingCopies
}

/** One run over records of a partition. It is also the record in work: there is one at a time. */
export class InOrderRun<R> implements RecordInWork<R> {
  readonly context: ConsumerContext<R>
  readonly partition: Partition
  readonly pendingCopies: PendingCopies
  readonly delivery: DeliveryContext
  /** Handles record after record. Fails with the cause of the record that ended it. */
  readonly loop: Effect.Effect<void, unknown, R>
  /** Whether the records are acknowledged together. */
  readonly isBatch: boolean
  /** Whether each record waits for its commit. */
  readonly #commitsEach: boolean
  readonly #handler: PerRecord<R>
  readonly #records: ReadonlyArray<ConsumerRecord>
  readonly #receivedMillis: number
  /** Undefined unless the order of each key is kept through retry topics. */
  readonly #order: OrderedPart | undefined
  #deadlineMillis: number
  #index = 0
  /** The record's number in the offset tracker, once the record has begun; -1 before. */
  #sequence = -1
  /** Whether the handler has been called for the record, or is about to be. */
  #hasBegun = false
  /** When the call began whose duration is not reported yet. */
  #unreportedSinceMillis: number | undefined = undefined
  /** When the record before was handled, where that was read and the next one begins at once: reading the clock costs as much as all that the breaker does. */
  #handledMillis: number | undefined = undefined
  /** Settles the record that ended the loop, where the loop has decided that already. */
  #settling: Settling<R> | undefined = undefined

  constructor(
    { context, handler, partition, pendingCopies }: Processor<R>,
    records: ReadonlyArray<ConsumerRecord>,
    receivedMillis: number
  ) {
    const { definition, clock, limits } = context
    const nowMillis = clock.currentTimeMillisUnsafe()
    this.context = context
    this.partition = partition
    this.pendingCopies = pendingCopies
    this.delivery = new DeliveryContext(limits, nowMillis)
    this.#order = partition.order
    this.isBatch = definition.listenerType === "BATCH"
    this.#commitsEach = !this.isBatch && definition.ackMode === "MANUAL_IMMEDIATE"
    this.#handler = handler
    this.#records = records
    this.#receivedMillis = receivedMillis
    this.#deadlineMillis = this.isBatch ? nowMillis + budgetMillis(definition) : Number.POSITIVE_INFINITY
    const untilFailure = this.#makeLoop()
    this.loop =
      this.isBatch || pendingCopies.waitsForEach ? untilFailure : Effect.catchCause(untilFailure, this.#goPast)
  }

  // The hot path

  /** Made once: the loop begins anew behind each record that failed. */
  #makeLoop(): Effect.Effect<void, unknown, R> {
    return Effect.whileLoop<unknown, unknown, R>(
      this.#commitsEach
        ? { while: this.#goesOn, body: () => Effect.andThen(this.#begin(), this.#finishAndCommit), step: () => {} }
        : { while: this.#goesOn, body: this.#begin, step: this.#finishAndMark }
    )
  }

  readonly #goesOn = (): boolean => {
    if (this.#order !== undefined) this.#passOver(this.#order)
    if (this.hasNext() && this.partition.open && !this.isOverdue() && !this.isAhead() && !this.isCrowded()) return true
    // The loop may begin again much later.
    this.#handledMillis = undefined
    return false
  }

  /** Leaves records out that are not to be delivered now: their key is parked. */
  #passOver(order: OrderedPart): void {
    while (!order.isQuiet && this.#sequence === -1 && this.hasNext() && this.partition.open && order.hasRoom) {
      const { record, partition } = this
      const sequence = partition.begin(record)
      if (!order.take(record, sequence)) {
        this.#sequence = sequence
        return
      }
      this.next()
      this.context.committer.mark(partition)
    }
  }

  readonly #begin = (): Effect.Effect<unknown, unknown, R> => {
    const { partition, delivery, record } = this
    // A record that halted its partition has begun before: it keeps its sequence.
    const isAgain = this.#sequence !== -1 && this.#hasBegun
    if (this.#sequence === -1) this.#sequence = partition.begin(record)
    this.#hasBegun = true
    partition.current = record
    const nowMillis = this.#handledMillis ?? this.context.clock.currentTimeMillisUnsafe()
    this.#handledMillis = undefined
    delivery.begin(nowMillis)
    if (isAgain || partition.tier !== undefined) replaceFailure(this)
    this.#reportCallUntil(nowMillis)
    return delivery.tryAdmit(partition) ? this.#start() : delivery.admit(partition, this.#start)
  }

  readonly #start = (): Effect.Effect<unknown, unknown, R> => {
    reportStarted(this.context, this.partition, this.record)
    return this.#invoke()
  }

  readonly #invoke = (): Effect.Effect<unknown, unknown, R> => {
    const invoked = this.#handler.invoke(this.record, this.context.receiver, this.#receivedMillis)
    return invoked instanceof Undecodable ? Effect.fail(invoked) : invoked
  }

  readonly #finishAndMark = (): void => {
    this.#unreportedSinceMillis = this.delivery.clock.startedMillis
    this.#handledMillis = this.#finishHandled()
    if (!this.isBatch) this.context.committer.mark(this.partition)
  }

  readonly #finishAndCommit = Effect.suspend(() => {
    reportCall(this.context, this.delivery)
    this.#finishHandled()
    // The commit takes time in which others can use the slot.
    this.delivery.releaseSlots()
    return this.context.committer.commit(this.partition)
  })

  #finishHandled(): number | undefined {
    const { record } = this
    const handledMillis = this.delivery.succeed()
    this.partition.finish(this.#sequence)
    this.next()
    reportHandledAtOnce(this.context, this.partition, record)
    return handledMillis
  }

  /** A call ends where the next record begins, so that one reading of the clock serves both: it costs more than all other measuring. */
  #reportCallUntil(nowMillis: number): void {
    if (this.#unreportedSinceMillis === undefined) return
    this.context.metrics.handlerReturned(nowMillis - this.#unreportedSinceMillis)
    this.#unreportedSinceMillis = undefined
  }

  reportLastCall(): void {
    if (this.#unreportedSinceMillis !== undefined) this.#reportCallUntil(this.context.clock.currentTimeMillisUnsafe())
  }

  /** The record is done with here: it is finished, or its copy is on its way. */
  next(): void {
    this.#sequence = -1
    this.#hasBegun = false
    this.#index++
  }

  // A record that failed

  /** Goes on behind a record whose copy is all that is left to do, and stops at every other record that failed. */
  readonly #goPast = (cause: Cause.Cause<unknown>): Effect.Effect<void, unknown, R> => {
    this.reportFailedCall(cause)
    const settling = afterFailure(this, cause)
    if (Effect.isEffect(settling) || !awaitsPublish(settling)) {
      this.#settling = settling
      return Effect.failCause(cause)
    }
    const added = this.pendingCopies.add(this.record, this.#sequence, settling)
    this.next()
    return Effect.andThen(added, this.loop)
  }

  /** Settles the record that ended the loop. */
  settlingOf(cause: Cause.Cause<unknown>): Settling<R> {
    const settling = this.#settling ?? afterFailure(this, cause)
    this.#settling = undefined
    return settling
  }

  /** Reports the call that ended the loop, unless the loop has done so. */
  reportFailedCall(cause: Cause.Cause<unknown>): void {
    if (this.#settling === undefined && hasCalled(cause)) reportCall(this.context, this.delivery)
  }

  get record(): ConsumerRecord {
    return this.#records[this.#index]!
  }

  get gate(): StartGate {
    return this.partition
  }

  attempt(): Effect.Effect<unknown, unknown, R> {
    return this.delivery.admit(this.partition, this.#invoke)
  }

  settle(result: DeliveryResult): boolean | Effect.Effect<boolean> {
    return awaitsPublish(result)
      ? this.pendingCopies.add(this.record, this.#sequence, result)
      : this.pendingCopies.finish(this.record, this.#sequence, result)
  }

  /** Commits behind a record that took the slow path, as the ack mode says. */
  acknowledge(result: DeliveryResult): Effect.Effect<void> {
    const { committer } = this.context
    // The acknowledgement of the copy leads to the commit.
    if (awaitsPublish(result)) return Effect.void
    if (this.#commitsEach) return committer.commit(this.partition)
    if (!this.isBatch) committer.mark(this.partition)
    return Effect.void
  }

  // The end of the run

  hasNext(): boolean {
    return this.#index < this.#records.length
  }

  /** How many records are done with. */
  get finished(): number {
    return this.#index
  }

  /** Whether the time of a batch is used up. A record that halted its partition is finished before the batch ends. */
  isOverdue(): boolean {
    return this.isBatch && this.#sequence === -1 && this.context.clock.currentTimeMillisUnsafe() > this.#deadlineMillis
  }

  /** Whether too many records are handled behind a copy that is not acknowledged: a crash would repeat all of them. */
  isAhead(): boolean {
    return this.pendingCopies.hasPending() && this.partition.tracker.isFull()
  }

  /** Whether no record starts because too many keys are parked. */
  isCrowded(): boolean {
    return this.#order !== undefined && !this.#order.hasRoom
  }

  /** A pause uses up none of the batch's time. */
  prolong(byMillis: number): void {
    this.#deadlineMillis += byMillis
  }
}
