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
import { isParked, type Settled, staysInPlace } from "../record/deliveryResult.ts"
import { budgetMillis, type Handler } from "../settings/bindingDefinition.ts"
import { timerFrom } from "../slots/concurrencySlots.ts"
import { missedTurn, pausedMillis, type Settling, settleAtOnce, settleUndecodable, waitsForTurn } from "./attempts.ts"
import { called, type Handling, handledAtOnce, report, settled, started } from "./consumerContext.ts"
import type { Outstanding } from "./pendingCopies.ts"

type PerRecord<R> = Extract<Handler<R>, { readonly _tag: "PerRecord" }>

/** Handles the chunks of a partition until it stops. */
export const handleChunk = Effect.fnUntraced(function* <R>(
  handling: Handling<R>,
  handler: PerRecord<R>,
  partition: Partition,
  outstanding: Outstanding,
  chunk: RecordChunk
) {
  const receivedMillis = handling.clock.currentTimeMillisUnsafe()
  const batchSize =
    handling.definition.listenerType === "BATCH" ? handling.definition.maxPollRecords : chunk.records.length
  for (let from = 0; from < chunk.records.length && !partition.stopping; ) {
    const records = chunk.records.slice(from, from + batchSize)
    handling.metrics.batch(records.length)
    from += yield* handleRecords(handling, handler, partition, outstanding, records, receivedMillis)
    if (handling.definition.listenerType === "BATCH") {
      yield* outstanding.idle
      yield* acknowledge(handling, partition)
    }
  }
})

/**
 * Handles records in order and answers how many are finished. It stops early when the partition does, when a batch's budget is used up (the 70 %
 * valve), and behind a record of a batch that had to be routed (`SEEK_TO_FAILED`); the rest then forms the next batch.
 */
const handleRecords = Effect.fnUntraced(function* <R>(
  handling: Handling<R>,
  handler: PerRecord<R>,
  partition: Partition,
  outstanding: Outstanding,
  records: ReadonlyArray<ConsumerRecord>,
  receivedMillis: number
) {
  const { clock, receiver, places, breaker } = handling
  const perBatch = handling.definition.listenerType === "BATCH"
  const commitsEach = !perBatch && handling.definition.ackMode === "MANUAL_IMMEDIATE"
  let batchDeadline =
    clock.currentTimeMillisUnsafe() + (perBatch ? budgetMillis(handling.definition) : Number.POSITIVE_INFINITY)
  const seeksToFailed = handling.definition.batchFailureStrategy === "SEEK_TO_FAILED"
  const timer = timerFrom(0)
  const turn = places.turn(partition)
  let index = 0
  let slot = -1
  let undecodable: Undecodable | undefined
  let unmeasuredMillis: number | undefined

  /** A call ends where the next record begins, so that the clock is read once for both: it costs more than all the rest that is counted. */
  const measure = (nowMillis: number) => {
    if (unmeasuredMillis === undefined) return
    handling.metrics.handlerReturned(nowMillis - unmeasuredMillis)
    unmeasuredMillis = undefined
  }
  const invoke = (record: ConsumerRecord): Effect.Effect<unknown, unknown, R> => {
    const invoked = handler.invoke(record, receiver, receivedMillis)
    if (!(invoked instanceof Undecodable)) return invoked
    undecodable = invoked
    return Effect.fail(invoked)
  }
  const start = (record: ConsumerRecord) => {
    started(handling, partition, record)
    return invoke(record)
  }
  const begin = (record: ConsumerRecord) => {
    // A record that was halted is already in flight: it is tried again in its slot.
    if (slot === -1) slot = partition.begin(record)
    partition.current = record
    timer.startedMillis = clock.currentTimeMillisUnsafe()
    measure(timer.startedMillis)
    timer.permit = undefined
    return turn.takes(timer) ? start(record) : turn.within(timer, () => start(record))
  }
  /** The record is done with here: finished, or another one's to finish. */
  const next = () => {
    slot = -1
    index++
    // Waiting for a commit is not handling: the budget has nothing to cut off.
    timer.startedMillis = Number.POSITIVE_INFINITY
  }
  const finish = () => {
    partition.tracker.finish(slot)
    next()
  }
  const finishHandled = () => {
    const record = records[index]
    if (commitsEach) called(handling, timer)
    else unmeasuredMillis = timer.startedMillis
    breaker?.succeeded(timer)
    finish()
    if (record !== undefined) handledAtOnce(handling, partition, record)
  }
  const finishAndCommit = Effect.suspend(() => {
    finishHandled()
    turn.leave()
    return outstanding.isOpen() ? Effect.void : handling.committer.commit(partition)
  })
  const current = (): ConsumerRecord => records[index]!
  // A record that was halted is in flight in its slot: it is finished before the batch ends.
  const isOverdue = () => perBatch && slot === -1 && clock.currentTimeMillisUnsafe() > batchDeadline
  /** Too much is handled behind a copy that is not acknowledged: a crash would repeat all of it. */
  const isAhead = () => outstanding.isOpen() && partition.tracker.isFull()
  const loop = Effect.whileLoop({
    while: () => index < records.length && partition.open && !isOverdue() && !isAhead(),
    body: commitsEach ? () => Effect.andThen(begin(current()), finishAndCommit) : () => begin(current()),
    step: commitsEach
      ? () => {}
      : () => {
          finishHandled()
          if (!perBatch) handling.committer.mark(partition)
        }
  })

  const settle = (record: ConsumerRecord, cause: Cause.Cause<unknown>, cutOff: boolean): Settling<R> => {
    const failed = undecodable
    undecodable = undefined
    if (failed !== undefined)
      return missedTurn(handling, timer) ? waitsForTurn : settleUndecodable(handling, partition, record, failed)
    called(handling, timer)
    return settleAtOnce(handling, partition, record, { cause, cutOff, timer }, (timer) =>
      places.within(partition, timer, () => invoke(record))
    )
  }
  /** What settles a record that the loop has stopped at. */
  let unsettled: Settling<R> | undefined
  /** Goes on behind a record that only a copy has to be published of; stops at every other one that failed. */
  const goingOn: Effect.Effect<void, unknown, R> = Effect.catchCause(loop, (cause) => {
    turn.leave()
    const record = current()
    const settling = settle(record, cause, false)
    if (Effect.isEffect(settling) || !isParked(settling)) {
      unsettled = settling
      return Effect.failCause(cause)
    }
    breaker?.release(timer)
    const added = outstanding.add(record, slot, settling)
    next()
    return Effect.andThen(added, goingOn)
  })
  const inTurn = Effect.ensuring(
    perBatch || handling.definition.orderingMode === "STRICT" ? loop : goingOn,
    Effect.sync(turn.leave)
  )
  /** Who is cut off gives back what its delivery has of the breaker. */
  const givingBack = <A, E>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    breaker === undefined ? effect : Effect.onInterrupt(effect, () => Effect.sync(() => breaker.release(timer)))
  const guarded = givingBack(inTurn)

  while (index < records.length) {
    batchDeadline += yield* pausedMillis(handling, partition)
    if (partition.stopping) break
    if (isAhead()) yield* partition.until(outstanding.idle)
    if (isOverdue()) {
      report(handling, partition, { _tag: "ProcessingBudgetReached" })
      break
    }
    unsettled = undefined
    // Another attempt of the record before had a place of its own.
    timer.leave = turn.leave
    const { exit, cutOff } = yield* partition.guard(guarded, timer)
    if (unmeasuredMillis !== undefined) measure(clock.currentTimeMillisUnsafe())
    if (Exit.isSuccess(exit)) continue
    if (perBatch && seeksToFailed) yield* givingBack(acknowledge(handling, partition))
    const record = current()
    const settling = unsettled ?? settle(record, exit.cause, cutOff)
    const outcome: Settled = Effect.isEffect(settling) ? yield* settling : settling
    breaker?.release(timer)
    if (isParked(outcome)) {
      if (!(yield* outstanding.add(record, slot, outcome))) break
      next()
      // In order, it is acknowledged by now.
      if (commitsEach && handling.definition.orderingMode === "STRICT") yield* handling.committer.commit(partition)
    } else {
      settled(handling, partition, record, outcome)
      if (outcome.settlement === "Unfinished") break
      if (staysInPlace(outcome)) continue
      finish()
      if (commitsEach && !outstanding.isOpen()) yield* handling.committer.commit(partition)
      else if (!perBatch) handling.committer.mark(partition)
    }
    if (perBatch && seeksToFailed && outcome.settlement !== "Handled") break
  }
  return index
})

/** What the ack mode says about a finished batch. */
const acknowledge = <R>(handling: Handling<R>, partition: Partition): Effect.Effect<void> => {
  if (handling.definition.ackMode === "MANUAL_IMMEDIATE") return handling.committer.commit(partition)
  handling.committer.mark(partition)
  return Effect.void
}
