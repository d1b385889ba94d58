/**
 * `processingOrder: "partition"`: one record at a time, in offset order.
 *
 * The hot path is one loop over a chunk with one failure boundary around it: per record there is the user's effect and plain bookkeeping, no
 * fiber, no timer, no closure. When the boundary is hit, the record that failed is settled (`recordDelivery.ts`), and the loop goes on behind it: at once where
 * all that it takes is a copy that is published meanwhile.
 */
import { type Cause, Effect, Exit } from "effect"
import type { RecordChunk } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import { Undecodable } from "../record/decoding.ts"
import { awaitsPublish, type DeliveryResult, staysInPlace } from "../record/deliveryResult.ts"
import { budgetMillis, type Handler } from "../settings/bindingDefinition.ts"
import { DeliveryContext } from "../slots/deliveryContext.ts"
import type { StartGate } from "../slots/startGate.ts"
import { type ConsumerContext, report, reportCall, reportHandledAtOnce, reportStarted } from "./consumerContext.ts"
import type { PendingCopies } from "./pendingCopies.ts"
import { afterFailure, type Settling } from "./recordDelivery.ts"
import type { RecordInWork } from "./recordInWork.ts"
import { undecodableOf } from "./unreadable.ts"

type PerRecord<R> = Extract<Handler<R>, { readonly _tag: "PerRecord" }>

/** What handles the chunks of one partition. */
interface Processor<R> {
  readonly context: ConsumerContext<R>
  readonly handler: PerRecord<R>
  readonly partition: Partition
  readonly pendingCopies: PendingCopies
}

/** Handles the records of a chunk until the partition stops. */
export const handleChunk = Effect.fnUntraced(function* <R>(processor: Processor<R>, chunk: RecordChunk) {
  const { context, partition, pendingCopies } = processor
  const { listenerType, maxPollRecords } = context.definition
  const receivedMillis = context.clock.currentTimeMillisUnsafe()
  const batchSize = listenerType === "BATCH" ? maxPollRecords : chunk.records.length
  for (let from = 0; from < chunk.records.length && !partition.stopping; ) {
    const records = chunk.records.slice(from, from + batchSize)
    context.metrics.batch(records.length)
    const run = new InOrderRun(processor, records, receivedMillis)
    yield* Effect.ensuring(handleRecords(run), run.delivery.ensureClosed)
    from += run.finished
    if (listenerType === "BATCH") {
      yield* pendingCopies.idle
      yield* acknowledge(context, partition)
    }
  }
})

/**
 * Handles records in order. It stops early when the partition does, when a batch's budget is used up (the 70 % valve), and behind a record of a batch that had
 * to be routed (`SEEK_TO_FAILED`); the rest then forms the next batch.
 */
const handleRecords = Effect.fnUntraced(function* <R>(run: InOrderRun<R>) {
  const { context, partition, pendingCopies, delivery } = run
  const seeksToFailed = run.isBatch && context.definition.batchFailureStrategy === "SEEK_TO_FAILED"
  while (run.hasNext()) {
    run.prolong(yield* pausedMillis(context, partition))
    if (partition.stopping) return
    if (run.isAhead()) yield* partition.until(pendingCopies.idle)
    if (run.isOverdue()) return report(context, partition, { _tag: "ProcessingBudgetReached" })
    const exit = yield* partition.guard(run.loop, delivery)
    run.measureLast()
    if (Exit.isSuccess(exit)) continue
    if (seeksToFailed) yield* acknowledge(context, partition)
    const settling = run.settlingOf(exit.cause)
    const result: DeliveryResult = Effect.isEffect(settling) ? yield* settling : settling
    const settled = run.settle(result)
    if (!(Effect.isEffect(settled) ? yield* settled : settled)) {
      if (staysInPlace(result)) continue
      return
    }
    run.next()
    yield* run.acknowledgeAfter(result)
    if (seeksToFailed && result.settlement !== "Handled") return
  }
})

/** One run over records of a partition. It is the record in work, too: there is one at a time. */
class InOrderRun<R> implements RecordInWork<R> {
  readonly context: ConsumerContext<R>
  readonly partition: Partition
  readonly pendingCopies: PendingCopies
  readonly delivery: DeliveryContext
  /** Whether the records are acknowledged together. */
  readonly isBatch: boolean
  /** Whether each record waits for its commit. */
  readonly #commitsEach: boolean
  readonly #isStrict: boolean
  readonly #handler: PerRecord<R>
  readonly #records: ReadonlyArray<ConsumerRecord>
  readonly #receivedMillis: number
  #deadlineMillis: number
  #index = 0
  /** Of the record in the offset tracker, from when it began until it is finished; -1 before. */
  #sequence = -1
  /** When the call began whose duration is not reported yet. */
  #unreportedSinceMillis: number | undefined = undefined
  /** What settles the record that the loop has stopped at. */
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
    this.isBatch = definition.listenerType === "BATCH"
    this.#commitsEach = !this.isBatch && definition.ackMode === "MANUAL_IMMEDIATE"
    this.#isStrict = definition.orderingMode === "STRICT"
    this.#handler = handler
    this.#records = records
    this.#receivedMillis = receivedMillis
    this.#deadlineMillis = this.isBatch ? nowMillis + budgetMillis(definition) : Number.POSITIVE_INFINITY
  }

  // The hot path

  /** Handles record after record. Fails with what a handler fails with, where more than a copy is needed. */
  get loop(): Effect.Effect<void, unknown, R> {
    return this.isBatch || this.#isStrict ? this.#untilFailure : this.#pastCopies
  }

  readonly #untilFailure: Effect.Effect<void, unknown, R> = Effect.suspend(() =>
    Effect.whileLoop<unknown, unknown, R>(
      this.#commitsEach
        ? {
            while: this.#goesOn,
            body: () => Effect.andThen(this.#begin(), this.#finishAndCommit),
            step: () => {}
          }
        : { while: this.#goesOn, body: this.#begin, step: this.#finishAndMark }
    )
  )

  readonly #goesOn = (): boolean => this.hasNext() && this.partition.open && !this.isOverdue() && !this.isAhead()

  readonly #begin = (): Effect.Effect<unknown, unknown, R> => {
    const { partition, delivery, record } = this
    // A record that was halted is in flight already: it keeps its sequence.
    if (this.#sequence === -1) this.#sequence = partition.begin(record)
    partition.current = record
    const nowMillis = this.context.clock.currentTimeMillisUnsafe()
    delivery.begin(nowMillis)
    this.#measure(nowMillis)
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
    this.#unreportedSinceMillis = this.delivery.startedMillis
    this.delivery.succeed()
    this.#finishHandled()
    if (!this.isBatch) this.context.committer.mark(this.partition)
  }

  readonly #finishAndCommit = Effect.suspend(() => {
    reportCall(this.context, this.delivery)
    this.delivery.succeed()
    this.#finishHandled()
    this.delivery.releaseSlots()
    return this.pendingCopies.hasPending() ? Effect.void : this.context.committer.commit(this.partition)
  })

  #finishHandled(): void {
    const { record } = this
    this.partition.tracker.finish(this.#sequence)
    this.next()
    reportHandledAtOnce(this.context, this.partition, record)
  }

  /** A call ends where the next record begins, so that the clock is read once for both: it costs more than all the rest that is counted. */
  #measure(nowMillis: number): void {
    if (this.#unreportedSinceMillis === undefined) return
    this.context.metrics.handlerReturned(nowMillis - this.#unreportedSinceMillis)
    this.#unreportedSinceMillis = undefined
  }

  measureLast(): void {
    if (this.#unreportedSinceMillis !== undefined) this.#measure(this.context.clock.currentTimeMillisUnsafe())
  }

  /** The record is done with here: finished, or its copy is on its way. */
  next(): void {
    this.#sequence = -1
    this.#index++
  }

  // A record that failed

  /** Goes on behind a record that only a copy has to be published of; stops at every other one that failed. */
  readonly #pastCopies: Effect.Effect<void, unknown, R> = Effect.suspend(() =>
    Effect.catchCause(this.#untilFailure, (cause) => {
      this.delivery.releaseSlots()
      const settling = this.#settlingOf(cause)
      if (Effect.isEffect(settling) || !awaitsPublish(settling)) {
        this.#settling = settling
        return Effect.failCause(cause)
      }
      const added = this.pendingCopies.add(this.record, this.#sequence, settling)
      this.next()
      return Effect.andThen(added, this.#pastCopies)
    })
  )

  /** What settles the record that the loop has stopped at. */
  settlingOf(cause: Cause.Cause<unknown>): Settling<R> {
    const settling = this.#settling ?? this.#settlingOf(cause)
    this.#settling = undefined
    return settling
  }

  #settlingOf(cause: Cause.Cause<unknown>): Settling<R> {
    if (undecodableOf(cause) === undefined) reportCall(this.context, this.delivery)
    return afterFailure(this, cause)
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

  /** What the ack mode says about a record that took the slow path. */
  acknowledgeAfter(result: DeliveryResult): Effect.Effect<void> {
    const { committer } = this.context
    if (awaitsPublish(result)) {
      // In order, the copy is acknowledged by now. Otherwise its acknowledgement leads to the commit.
      return this.#commitsEach && this.#isStrict ? committer.commit(this.partition) : Effect.void
    }
    if (this.#commitsEach && !this.pendingCopies.hasPending()) return committer.commit(this.partition)
    if (!this.isBatch) committer.mark(this.partition)
    return Effect.void
  }

  // How far the run goes

  hasNext(): boolean {
    return this.#index < this.#records.length
  }

  /** How many records are done with. */
  get finished(): number {
    return this.#index
  }

  /** Whether the time of a batch is used up. A record that was halted is in flight: it is finished before the batch ends. */
  isOverdue(): boolean {
    return this.isBatch && this.#sequence === -1 && this.context.clock.currentTimeMillisUnsafe() > this.#deadlineMillis
  }

  /** Whether too much is handled behind a copy that is not acknowledged: a crash would repeat all of it. */
  isAhead(): boolean {
    return this.pendingCopies.hasPending() && this.partition.tracker.isFull()
  }

  /** A pause uses up none of the batch's time. */
  prolong(byMillis: number): void {
    this.#deadlineMillis += byMillis
  }
}

/** Waits until records may start; answers how long that took. */
const pausedMillis = <R>({ clock }: ConsumerContext<R>, partition: Partition): Effect.Effect<number> =>
  Effect.suspend(() => {
    const before = clock.currentTimeMillisUnsafe()
    return Effect.map(partition.runnable, () => clock.currentTimeMillisUnsafe() - before)
  })

/** What the ack mode says about a finished batch. */
const acknowledge = <R>(context: ConsumerContext<R>, partition: Partition): Effect.Effect<void> => {
  if (context.definition.ackMode === "MANUAL_IMMEDIATE") return context.committer.commit(partition)
  context.committer.mark(partition)
  return Effect.void
}
