/**
 * `processingOrder: "partition"`: one record at a time, in offset order.
 *
 * The hot path is one loop over a chunk with one failure boundary around it: per record there is the user's effect and plain bookkeeping, no
 * fiber, no timer. When the boundary is hit, the record that failed is settled (`attempts.ts`), and the loop goes on behind it: at once where all that it takes
 * is a copy that is published meanwhile.
 */
import { type Cause, Effect, Exit } from "effect"
import type { RecordChunk } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import { Undecodable } from "../record/decoding.ts"
import { awaitsPublish, type DeliveryResult, staysInPlace } from "../record/deliveryResult.ts"
import { budgetMillis, type Handler } from "../settings/bindingDefinition.ts"
import { deliveryFrom } from "../slots/concurrencySlots.ts"
import { missedSlot, pausedMillis, type Settling, settleAtOnce, settleUndecodable, waitsForSlot } from "./attempts.ts"
import {
  type ConsumerContext,
  report,
  reportCall,
  reportHandledAtOnce,
  reportSettled,
  reportStarted
} from "./consumerContext.ts"
import type { PendingCopies } from "./pendingCopies.ts"

type PerRecord<R> = Extract<Handler<R>, { readonly _tag: "PerRecord" }>

/** Handles the chunks of a partition until it stops. */
export const handleChunk = Effect.fnUntraced(function* <R>(
  context: ConsumerContext<R>,
  handler: PerRecord<R>,
  partition: Partition,
  pendingCopies: PendingCopies,
  chunk: RecordChunk
) {
  const receivedMillis = context.clock.currentTimeMillisUnsafe()
  const batchSize =
    context.definition.listenerType === "BATCH" ? context.definition.maxPollRecords : chunk.records.length
  for (let from = 0; from < chunk.records.length && !partition.stopping; ) {
    const records = chunk.records.slice(from, from + batchSize)
    context.metrics.batch(records.length)
    from += yield* handleRecords(context, handler, partition, pendingCopies, records, receivedMillis)
    if (context.definition.listenerType === "BATCH") {
      yield* pendingCopies.idle
      yield* acknowledge(context, partition)
    }
  }
})

/**
 * Handles records in order and answers how many are finished. It stops early when the partition does, when a batch's budget is used up (the 70 %
 * valve), and behind a record of a batch that had to be routed (`SEEK_TO_FAILED`); the rest then forms the next batch.
 */
const handleRecords = Effect.fnUntraced(function* <R>(
  context: ConsumerContext<R>,
  handler: PerRecord<R>,
  partition: Partition,
  pendingCopies: PendingCopies,
  records: ReadonlyArray<ConsumerRecord>,
  receivedMillis: number
) {
  const { clock, receiver, slots, breaker } = context
  const perBatch = context.definition.listenerType === "BATCH"
  const commitsEach = !perBatch && context.definition.ackMode === "MANUAL_IMMEDIATE"
  let batchDeadline =
    clock.currentTimeMillisUnsafe() + (perBatch ? budgetMillis(context.definition) : Number.POSITIVE_INFINITY)
  const seeksToFailed = context.definition.batchFailureStrategy === "SEEK_TO_FAILED"
  const delivery = deliveryFrom(0)
  const lease = slots.lease(partition)
  let index = 0
  let sequence = -1
  let undecodable: Undecodable | undefined
  let unmeasuredMillis: number | undefined

  /** A call ends where the next record begins, so that the clock is read once for both: it costs more than all the rest that is counted. */
  const measure = (nowMillis: number) => {
    if (unmeasuredMillis === undefined) return
    context.metrics.handlerReturned(nowMillis - unmeasuredMillis)
    unmeasuredMillis = undefined
  }
  const invoke = (record: ConsumerRecord): Effect.Effect<unknown, unknown, R> => {
    const invoked = handler.invoke(record, receiver, receivedMillis)
    if (!(invoked instanceof Undecodable)) return invoked
    undecodable = invoked
    return Effect.fail(invoked)
  }
  const start = (record: ConsumerRecord) => {
    reportStarted(context, partition, record)
    return invoke(record)
  }
  const begin = (record: ConsumerRecord) => {
    // A record that was halted is already in flight: it is tried again in its slot.
    if (sequence === -1) sequence = partition.begin(record)
    partition.current = record
    delivery.startedMillis = clock.currentTimeMillisUnsafe()
    measure(delivery.startedMillis)
    delivery.permit = undefined
    return lease.tryAcquire(delivery) ? start(record) : lease.within(delivery, () => start(record))
  }
  /** The record is done with here: finished, or another one's to finish. */
  const next = () => {
    sequence = -1
    index++
    // Waiting for a commit is not handling: the budget has nothing to cut off.
    delivery.startedMillis = Number.POSITIVE_INFINITY
  }
  const finish = () => {
    partition.tracker.finish(sequence)
    next()
  }
  const finishHandled = () => {
    const record = records[index]
    if (commitsEach) reportCall(context, delivery)
    else unmeasuredMillis = delivery.startedMillis
    breaker?.succeeded(delivery)
    finish()
    if (record !== undefined) reportHandledAtOnce(context, partition, record)
  }
  const finishAndCommit = Effect.suspend(() => {
    finishHandled()
    lease.release()
    return pendingCopies.hasPending() ? Effect.void : context.committer.commit(partition)
  })
  const current = (): ConsumerRecord => records[index]!
  // A record that was halted is in flight in its slot: it is finished before the batch ends.
  const isOverdue = () => perBatch && sequence === -1 && clock.currentTimeMillisUnsafe() > batchDeadline
  /** Too much is handled behind a copy that is not acknowledged: a crash would repeat all of it. */
  const isAhead = () => pendingCopies.hasPending() && partition.tracker.isFull()
  const loop = Effect.whileLoop({
    while: () => index < records.length && partition.open && !isOverdue() && !isAhead(),
    body: commitsEach ? () => Effect.andThen(begin(current()), finishAndCommit) : () => begin(current()),
    step: commitsEach
      ? () => {}
      : () => {
          finishHandled()
          if (!perBatch) context.committer.mark(partition)
        }
  })

  const settle = (record: ConsumerRecord, cause: Cause.Cause<unknown>, cutOff: boolean): Settling<R> => {
    const failed = undecodable
    undecodable = undefined
    if (failed !== undefined)
      return missedSlot(context, delivery) ? waitsForSlot : settleUndecodable(context, partition, record, failed)
    reportCall(context, delivery)
    return settleAtOnce(context, partition, record, { cause, cutOff, delivery }, (delivery) =>
      slots.within(partition, delivery, () => invoke(record))
    )
  }
  /** What settles a record that the loop has stopped at. */
  let unsettled: Settling<R> | undefined
  /** Goes on behind a record that only a copy has to be published of; stops at every other one that failed. */
  const goingOn: Effect.Effect<void, unknown, R> = Effect.catchCause(loop, (cause) => {
    lease.release()
    const record = current()
    const settling = settle(record, cause, false)
    if (Effect.isEffect(settling) || !awaitsPublish(settling)) {
      unsettled = settling
      return Effect.failCause(cause)
    }
    breaker?.release(delivery)
    const added = pendingCopies.add(record, sequence, settling)
    next()
    return Effect.andThen(added, goingOn)
  })
  const inTurn = Effect.ensuring(
    perBatch || context.definition.orderingMode === "STRICT" ? loop : goingOn,
    Effect.sync(lease.release)
  )
  /** Who is cut off gives back what its delivery has of the breaker. */
  const givingBack = <A, E>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    breaker === undefined ? effect : Effect.onInterrupt(effect, () => Effect.sync(() => breaker.release(delivery)))
  const guarded = givingBack(inTurn)

  while (index < records.length) {
    batchDeadline += yield* pausedMillis(context, partition)
    if (partition.stopping) break
    if (isAhead()) yield* partition.until(pendingCopies.idle)
    if (isOverdue()) {
      report(context, partition, { _tag: "ProcessingBudgetReached" })
      break
    }
    unsettled = undefined
    // Another attempt of the record before had a place of its own.
    delivery.releaseSlot = lease.release
    const { exit, cutOff } = yield* partition.guard(guarded, delivery)
    if (unmeasuredMillis !== undefined) measure(clock.currentTimeMillisUnsafe())
    if (Exit.isSuccess(exit)) continue
    if (perBatch && seeksToFailed) yield* givingBack(acknowledge(context, partition))
    const record = current()
    const settling = unsettled ?? settle(record, exit.cause, cutOff)
    const outcome: DeliveryResult = Effect.isEffect(settling) ? yield* settling : settling
    breaker?.release(delivery)
    if (awaitsPublish(outcome)) {
      if (!(yield* pendingCopies.add(record, sequence, outcome))) break
      next()
      // In order, it is acknowledged by now.
      if (commitsEach && context.definition.orderingMode === "STRICT") yield* context.committer.commit(partition)
    } else {
      reportSettled(context, partition, record, outcome)
      if (outcome.settlement === "Abandoned") break
      if (staysInPlace(outcome)) continue
      finish()
      if (commitsEach && !pendingCopies.hasPending()) yield* context.committer.commit(partition)
      else if (!perBatch) context.committer.mark(partition)
    }
    if (perBatch && seeksToFailed && outcome.settlement !== "Handled") break
  }
  return index
})

/** What the ack mode says about a finished batch. */
const acknowledge = <R>(context: ConsumerContext<R>, partition: Partition): Effect.Effect<void> => {
  if (context.definition.ackMode === "MANUAL_IMMEDIATE") return context.committer.commit(partition)
  context.committer.mark(partition)
  return Effect.void
}
