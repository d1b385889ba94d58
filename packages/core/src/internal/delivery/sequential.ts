/**
 * `processingOrder: "partition"`: one record at a time, in offset order. This scheduler decides where a run of the hot loop (`inOrderRun.ts`) ends, settles the
 * record that the loop stopped at, and goes on behind it.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { RecordChunk } from "../../Broker.ts"
import type { Partition } from "../partition/partition.ts"
import { staysInPlace } from "../record/deliveryResult.ts"
import { type ConsumerContext, report } from "./consumerContext.ts"
import { InOrderRun, type Processor } from "./inOrderRun.ts"

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
      yield* acknowledgeBatch(context, partition)
    }
  }
})

/**
 * Handles records in order. It stops early when the partition does, when a batch's time is used up (the 70 % valve), and behind a record of a batch that had to
 * be routed (`SEEK_TO_FAILED`); the rest then forms the next batch.
 */
const handleRecords = Effect.fnUntraced(function* <R>(run: InOrderRun<R>) {
  const { context, partition, pendingCopies, delivery } = run
  const seeksToFailed = run.isBatch && context.definition.batchFailureStrategy === "SEEK_TO_FAILED"
  while (run.hasNext()) {
    run.prolong(yield* waitUntilRunnable(context, partition))
    if (partition.stopping) return
    if (run.isAhead()) yield* partition.until(pendingCopies.idle)
    if (run.isCrowded()) yield* partition.until(partition.order?.room ?? Effect.void)
    if (run.isOverdue()) return report(context, partition, { _tag: "ProcessingBudgetReached" })
    const exit = yield* partition.guard(run.loop, delivery)
    run.reportLastCall()
    if (Exit.isSuccess(exit)) continue
    run.reportFailedCall(exit.cause)
    // The commit of the records before it is neither a part of its call nor a use of its budget.
    if (seeksToFailed) yield* delivery.clock.whilePaused(acknowledgeBatch(context, partition))
    const settling = run.settlingOf(exit.cause)
    const beforeMillis = context.clock.currentTimeMillisUnsafe()
    const result = Effect.isEffect(settling) ? yield* settling : settling
    if (result.wasHeld) run.prolong(context.clock.currentTimeMillisUnsafe() - beforeMillis)
    const settled = run.settle(result)
    if (!(Effect.isEffect(settled) ? yield* settled : settled)) {
      if (staysInPlace(result)) continue
      return
    }
    run.next()
    yield* run.acknowledge(result)
    if (seeksToFailed && result.settlement !== "Handled") return
  }
})

/** Returns when records may start, with the milliseconds that it waited. */
const waitUntilRunnable = <R>({ clock }: ConsumerContext<R>, partition: Partition): Effect.Effect<number> =>
  Effect.suspend(() => {
    const before = clock.currentTimeMillisUnsafe()
    return Effect.map(partition.runnable, () => clock.currentTimeMillisUnsafe() - before)
  })

/** A finished batch waits for its commit under `MANUAL_IMMEDIATE`, and is committed in the background otherwise. */
const acknowledgeBatch = <R>(context: ConsumerContext<R>, partition: Partition): Effect.Effect<void> => {
  if (context.definition.ackMode === "MANUAL_IMMEDIATE") return context.committer.commit(partition)
  context.committer.mark(partition)
  return Effect.void
}
