/**
 * `Binding.makeTransactional`: consume, transform and produce in one Kafka transaction, with the offsets in it (connector seed §4.8).
 *
 * Each input partition has a transactional id of its own, so that the next owner fences a zombie. A run of records shares a transaction. When one of them
 * fails, the transaction is aborted, those before it run again in a transaction of their own, and the failed one goes on alone: attempts, and at the end of
 * them its dead letter, each in a transaction together with its offset.
 */
import { Effect, Exit, Schedule, type Scope } from "effect"
import type { Broker, RecordChunk, TransactionalProducer } from "../../Broker.ts"
import type { ConsumerRecord, ProducerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import type { Undecodable } from "../record/decoding.ts"
import { awaitsPublish, type DeliveryResult, staysInPlace } from "../record/deliveryResult.ts"
import { budgetMillis } from "../settings/bindingDefinition.ts"
import { type DeliveryContext, deliveryFrom } from "../slots/concurrencySlots.ts"
import * as PausedClock from "../slots/pausedClock.ts"
import { type FailedRun, settleFailed, settleUndecodable, slotForUndecodable } from "./attempts.ts"
import { type ConsumerContext, reportCommitted, reportSettled } from "./consumerContext.ts"
import { inTransaction, longestMillis, type Progress, type Run, refusesRecord, sendOffset } from "./transaction.ts"

/** Unique per input partition (Kafka's `transactional.id`). */
export const transactionalId = (groupId: string, partition: Partition): string =>
  `${groupId}-${partition.topic}-${partition.partition}`

/**
 * `transaction.timeout.ms`: a record may take its whole budget in the end of a transaction. Brokers refuse more than 15 minutes by default
 * (`transaction.max.timeout.ms`).
 */
const transactionTimeoutMillis = (budget: number): number =>
  Math.min(900_000, Math.max(60_000, budget + 2 * longestMillis))

/** Waits between attempts to get a producer: 100 ms doubling up to 10 s. */
const refused = Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("10 seconds")])

/** A producer that has fenced whoever had the partition before, for as long as the scope; undefined when the partition stops first. */
export const acquire = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  { groupId, definition }: Pick<ConsumerContext<unknown>, "groupId" | "definition">,
  partition: Partition
): Effect.fn.Return<TransactionalProducer | undefined, never, Scope.Scope> {
  const attempt = broker.transactionalProducer({
    transactionalId: transactionalId(groupId, partition),
    transactionTimeout: transactionTimeoutMillis(budgetMillis(definition))
  })
  return yield* attempt.pipe(
    Effect.retry({ schedule: refused, while: () => !partition.stopping }),
    Effect.catch(() => Effect.succeed(undefined))
  )
})

/**
 * The offset to go on from. It is read after the older producer was fenced: what that one had open is decided by now, and the offset that came with
 * the assignment may be older than the decision.
 */
export const committedOffset = (broker: Broker["Service"], groupId: string, partition: Partition) =>
  Effect.scoped(Effect.flatMap(broker.admin, (admin) => admin.committedOffsets(groupId, [partition.topic]))).pipe(
    Effect.retry({ schedule: refused, while: () => !partition.stopping }),
    Effect.map((offsets) => offsets.find((entry) => entry.partition === partition.partition)?.offset),
    Effect.catch(() => Effect.succeed(undefined))
  )

/** Handles a chunk in transactions of up to `maxPollRecords` records. */
export const handleChunk = Effect.fnUntraced(function* <R>(run: Run<R>, chunk: RecordChunk) {
  const { partition, context } = run
  const size = context.definition.maxPollRecords
  for (let from = 0; from < chunk.records.length; ) {
    yield* partition.runnable
    if (partition.stopping) return
    const records = chunk.records.slice(from, from + size)
    from += yield* handleRun(run, records)
  }
  // Control records behind the last record, or a chunk of nothing else: without this, lag would not reach 0.
  if (!partition.stopping && partition.committed < chunk.nextOffset) {
    if (!(yield* commitOnly(run, chunk.nextOffset))) return
    partition.committed = chunk.nextOffset
    reportCommitted(context, partition)
  }
})

/** Handles the records in one transaction, and when one fails, it by itself; answers how many are finished. */
const handleRun = Effect.fnUntraced(function* <R>(run: Run<R>, records: ReadonlyArray<ConsumerRecord>) {
  const { partition, context } = run
  const delivery = deliveryFrom(context.clock.currentTimeMillisUnsafe())
  const progress: Progress = { index: 0, undecodable: undefined }
  const { exit, cutOff } = yield* partition.guard(inTransaction(run, records, progress, delivery), delivery)
  if (Exit.isSuccess(exit) || partition.stopping) {
    // One that failed while the partition was given up still has it.
    context.breaker?.release(delivery)
    if (Exit.isSuccess(exit))
      book(run, records.slice(0, progress.index), { settlement: "Handled", attempts: 1, failure: undefined })
    return progress.index
  }
  // Those before the failed one were undone with it.
  if (progress.index > 0) {
    context.breaker?.release(delivery)
    return yield* handlePrefix(run, records.slice(0, progress.index))
  }
  const record = records[0]!
  const failed = { cause: exit.cause, cutOff, delivery }
  return (yield* settleAlone(run, record, failed, progress.undecodable)) ? 1 : 0
})

const handlePrefix = <R>(run: Run<R>, records: ReadonlyArray<ConsumerRecord>): Effect.Effect<number, never, R> =>
  Effect.suspend(() => handleRun(run, records))

/** Settles one record whose transaction was aborted; false when the partition stopped first. */
const settleAlone = Effect.fnUntraced(function* <R>(
  run: Run<R>,
  record: ConsumerRecord,
  failed: FailedRun,
  undecodable: Undecodable | undefined
) {
  const { partition, context } = run
  const again = (delivery: DeliveryContext) => alone(run, record, delivery)
  const publish = (copy: ProducerRecord) =>
    run.producer
      .transaction((transaction) =>
        Effect.flatMap(transaction.send(copy), (metadata) =>
          Effect.as(sendOffset(run, transaction, record.offset + 1n), metadata)
        )
      )
      .pipe(Effect.tapError((error) => Effect.sync(() => (refusesRecord(error) ? undefined : run.onBroken(error)))))
  const via = context.copyPublisher.through(publish)
  let current = failed
  while (true) {
    if (undecodable !== undefined && !(yield* slotForUndecodable(context, partition))) return false
    const settling: DeliveryResult =
      undecodable === undefined
        ? yield* settleFailed(context, partition, record, current, again)
        : settleUndecodable(context, partition, record, undecodable)
    context.breaker?.release(current.delivery)
    const outcome: DeliveryResult =
      awaitsPublish(settling) && !(yield* via.publish(settling.copy))
        ? { ...settling, settlement: "Abandoned" }
        : settling
    if (outcome.settlement === "Abandoned") return false
    if (outcome.settlement === "Skipped" && !(yield* commitOnly(run, record.offset + 1n))) return false
    if (staysInPlace(outcome) && partition.stopping) return false
    book(run, [record], outcome)
    if (!staysInPlace(outcome)) return true
    yield* partition.runnable
    if (partition.stopping) return false
    const delivery = deliveryFrom(context.clock.currentTimeMillisUnsafe())
    const { exit, cutOff } = yield* partition.guard(again(delivery), delivery)
    if (Exit.isSuccess(exit)) {
      book(run, [record], { settlement: "Handled", attempts: 1, failure: undefined })
      return true
    }
    current = { cause: exit.cause, cutOff, delivery }
  }
})

/** One record in a transaction of its own. A pause before its turn makes it wait; when the partition stops first, it interrupts itself. */
const alone = Effect.fnUntraced(function* <R>(
  run: Run<R>,
  record: ConsumerRecord,
  delivery: DeliveryContext
): Effect.fn.Return<void, unknown, R> {
  const { partition, context } = run
  while (true) {
    const progress: Progress = { index: 0, undecodable: undefined }
    yield* inTransaction(run, [record], progress, delivery)
    if (progress.index > 0) return
    if (partition.stopping) return yield* Effect.interrupt
    yield* PausedClock.make(context.clock, delivery).within(partition.runnable)
  }
})

const commitOnly = <R>(run: Run<R>, offset: bigint): Effect.Effect<boolean> =>
  Effect.match(
    run.producer.transaction((transaction) => sendOffset(run, transaction, offset)),
    {
      onSuccess: () => true,
      onFailure: (error) => {
        run.onBroken(error)
        return false
      }
    }
  )

/** Books records whose transaction is committed. */
const book = <R>(run: Run<R>, records: ReadonlyArray<ConsumerRecord>, outcome: DeliveryResult): void => {
  const { partition, context } = run
  for (const record of records) {
    reportSettled(context, partition, record, outcome)
    if (staysInPlace(outcome)) continue
    partition.tracker.finish(partition.begin(record))
    partition.committed = record.offset + 1n
  }
  reportCommitted(context, partition)
}
