/**
 * `Binding.makeTransactional`: consume, transform and produce in one Kafka transaction, with the offsets in it (connector seed §4.8).
 *
 * Each input partition has a transactional id of its own, so that the next owner fences a zombie. A run of records shares a transaction. When one of them fails, the
 * transaction is aborted. Those before it run again in a transaction of their own. The failed record goes on alone: each of its attempts, and at the end its copy,
 * is in a transaction together with its offset.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Broker, RecordChunk, TransactionalProducer } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, ProducerRecord } from "../../ConsumerRecord.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import type { OngoingFailures } from "../observe/ongoingFailures.ts"
import * as CommitMetadata from "../partition/commitMetadata.ts"
import type { Partition } from "../partition/partition.ts"
import { awaitsPublish, type DeliveryResult, handled, staysInPlace } from "../record/deliveryResult.ts"
import { budgetMillis } from "../settings/bindingDefinition.ts"
import { DeliveryContext } from "../slots/deliveryContext.ts"
import type { StartGate } from "../slots/startGate.ts"
import { type ConsumerContext, reportCommitted, reportSettled } from "./consumerContext.ts"
import { deliver, deliverUnreadable } from "./recordDelivery.ts"
import type { RecordInWork } from "./recordInWork.ts"
import { inTransaction, longestMillis, type Progress, type Run, refusesRecord, sendOffset } from "./transaction.ts"
import { undecodableOf } from "./unreadable.ts"

/**
 * `transaction.timeout.ms`: a record may take its whole budget in the end of a transaction. Brokers refuse more than 15 minutes by default
 * (`transaction.max.timeout.ms`).
 */
const transactionTimeoutMillis = (budget: number): number =>
  Math.min(900_000, Math.max(60_000, budget + 2 * longestMillis))

/** Waits between attempts to get a producer, or its offset: 100 ms doubling up to 10 s. */
const refused = Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("10 seconds")])

/** Nothing is known of the transactions of a partition that this process has given up. */
export const forgetFailures = ({ failures: { transactions } }: ConsumerContext<unknown>, { key }: Partition): void => {
  for (const about of [key, producerOf(key), offsetOf(key)]) transactions.worked(about)
}

const producerOf = (key: string): string => `${key} (producer)`

const offsetOf = (key: string): string => `${key} (offset)`

/** Shows in health for how long a request fails that is repeated until it works. */
const reported =
  (failures: OngoingFailures, about: string) =>
  <A, R>(request: Effect.Effect<A, BrokerError, R>): Effect.Effect<A, BrokerError, R> =>
    request.pipe(
      Effect.tapError((error) => Effect.sync(() => failures.failed(about, error))),
      Effect.tap(() => Effect.sync(() => failures.worked(about)))
    )

/** Repeats a request until it works, with growing waits. Undefined when the partition stops first: a stop ends the wait (ruling 35). */
const untilItWorks = Effect.fnUntraced(function* <A, R>(
  partition: Partition,
  request: Effect.Effect<A, BrokerError, R>
): Effect.fn.Return<A | undefined, never, R> {
  const nextWait = yield* Schedule.toStep(refused)
  while (true) {
    const result = yield* Effect.result(request)
    if (Result.isSuccess(result)) return result.success
    const [, wait] = yield* Effect.orDie(nextWait(yield* Clock.currentTimeMillis, undefined))
    yield* partition.until(Effect.sleep(wait))
    if (partition.stopping) return undefined
  }
})

/** A producer that has fenced the partition's previous owner. It lives as long as the scope. Undefined when the partition stops first. */
export const acquire = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  { groupId, definition, failures }: Pick<ConsumerContext<unknown>, "groupId" | "definition" | "failures">,
  partition: Partition
): Effect.fn.Return<TransactionalProducer | undefined, never, Scope.Scope> {
  const attempt = broker.transactionalProducer({
    transactionalId: DerivedNames.transactionalId(groupId, partition.topic, partition.partition),
    fences: [DerivedNames.formerTransactionalId(groupId, partition.topic, partition.partition)],
    transactionTimeout: transactionTimeoutMillis(budgetMillis(definition))
  })
  return yield* untilItWorks(partition, reported(failures.transactions, producerOf(partition.key))(attempt))
})

/**
 * The offset to go on from. It is read after the older producer was fenced: that producer's open transaction is decided by now, and the offset that came with the
 * assignment may be older than the decision.
 */
export const committedOffset = (
  broker: Broker["Service"],
  { groupId, failures }: Pick<ConsumerContext<unknown>, "groupId" | "failures">,
  partition: Partition
) =>
  Effect.scoped(Effect.flatMap(broker.admin, (admin) => admin.committedOffsets(groupId, [partition.topic]))).pipe(
    reported(failures.transactions, offsetOf(partition.key)),
    (request) => untilItWorks(partition, request),
    Effect.map((offsets) => {
      const { topic } = CommitMetadata.parse(partition.metadata ?? "")
      const commit = offsets?.find((entry) => entry.partition === partition.partition)
      return commit === undefined || CommitMetadata.isOfFormerTopic(commit, topic) ? undefined : commit.offset
    })
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
    partition.tracker.endOfChunk(chunk.nextOffset)
    context.failures.transactions.worked(partition.key)
    reportCommitted(context, partition)
  }
})

/** Handles the records in one transaction, and a record that fails by itself. Answers how many are finished. */
const handleRun = <R>(run: Run<R>, records: ReadonlyArray<ConsumerRecord>): Effect.Effect<number, never, R> =>
  Effect.suspend(() => {
    const { limits, clock } = run.context
    const delivery = new DeliveryContext(limits, clock.currentTimeMillisUnsafe())
    return Effect.ensuring(handleTogether(run, records, delivery), delivery.ensureClosed)
  })

const handleTogether = Effect.fnUntraced(function* <R>(
  run: Run<R>,
  records: ReadonlyArray<ConsumerRecord>,
  delivery: DeliveryContext
) {
  const { partition } = run
  const progress: Progress = { index: 0 }
  partition.current = records[0]
  yield* delivery.waitForBreaker(partition)
  const exit = yield* partition.guard(inTransaction(run, records, progress, delivery), delivery)
  if (Exit.isSuccess(exit) || partition.stopping) {
    if (Exit.isSuccess(exit)) book(run, records.slice(0, progress.index), handled(1))
    return progress.index
  }
  const [record] = records
  if (record === undefined || progress.index > 0) {
    // The abort has undone the records before the failed one, too.
    delivery.close("released")
    return yield* handleRun(run, records.slice(0, progress.index))
  }
  const undecodable = undecodableOf(exit.cause)
  const work = alone(run, record, delivery)
  const isDone = undecodable === undefined ? deliver(work, exit.cause) : deliverUnreadable(work, undecodable)
  return (yield* isDone) ? 1 : 0
})

/** A record in work by itself. */
const alone = <R>(run: Run<R>, record: ConsumerRecord, delivery: DeliveryContext): RecordInWork<R> => {
  const { partition, context } = run
  const gate: StartGate = partition
  const send = (copy: ProducerRecord) =>
    run.producer
      .transaction((transaction) =>
        Effect.flatMap(transaction.send(copy), (metadata) =>
          Effect.as(sendOffset(run, transaction, record.offset + 1n), metadata)
        )
      )
      .pipe(Effect.tapError((error) => Effect.sync(() => (refusesRecord(error) ? undefined : run.onBroken(error)))))
  const publisher = context.copyPublisher.through(send)
  return {
    ...{ context, partition, record, delivery, gate },
    attempt: () => attemptAlone(run, record, delivery),
    settle: Effect.fnUntraced(function* (result) {
      if (awaitsPublish(result) && !(yield* publisher.publish(result.copy))) return false
      if (result.settlement === "Abandoned") return false
      if (result.settlement === "Skipped" && !(yield* commitOnly(run, record.offset + 1n))) return false
      if (staysInPlace(result) && partition.stopping) return false
      book(run, [record], result)
      return !staysInPlace(result)
    })
  }
}

/** One record in a transaction of its own. It waits out a pause that comes before its call, and interrupts itself when the partition stops first. */
const attemptAlone = Effect.fnUntraced(function* <R>(
  run: Run<R>,
  record: ConsumerRecord,
  delivery: DeliveryContext
): Effect.fn.Return<void, unknown, R> {
  const { partition } = run
  while (true) {
    const progress: Progress = { index: 0 }
    partition.current = record
    yield* delivery.waitForBreaker(partition)
    yield* inTransaction(run, [record], progress, delivery)
    if (progress.index > 0) return
    if (partition.stopping) return yield* Effect.interrupt
    yield* delivery.clock.whilePaused(partition.runnable)
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

/** Finishes records whose transaction is committed. */
const book = <R>(run: Run<R>, records: ReadonlyArray<ConsumerRecord>, outcome: DeliveryResult): void => {
  const { partition, context } = run
  for (const record of records) {
    reportSettled(context, partition, record, outcome)
    if (staysInPlace(outcome)) continue
    partition.tracker.finish(partition.begin(record))
    partition.committed = record.offset + 1n
    context.failures.transactions.worked(partition.key)
  }
  reportCommitted(context, partition)
}
