/**
 * `Binding.makeBatch`: one call of the handler for many records, with partial failure.
 *
 * Records that the handler names as failed are tried again one by one, each with the attempts of the binding, and take their route when those are used up. A record
 * that is done is never handed over again. When the handler cannot say which record failed, the batch is tried again as a whole, and then record by record: one
 * bad record never takes its batch to the dead letter topic.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { RecordChunk } from "../../Broker.ts"
import type { ConsumerRecord, RecordPosition } from "../../ConsumerRecord.ts"
import * as BatchVerdict from "../failure/batchVerdict.ts"
import * as Failures from "../failure/failure.ts"
import type { Partition } from "../partition/partition.ts"
import { awaitsPublish, type DeliveryResult, handled, skipped } from "../record/deliveryResult.ts"
import type { Handler, OpenBatch } from "../settings/bindingDefinition.ts"
import { alreadyHandled } from "../settings/idempotent.ts"
import { DeliveryContext } from "../slots/deliveryContext.ts"
import type { StartGate } from "../slots/startGate.ts"
import { type ConsumerContext, reportCall, reportStarted } from "./consumerContext.ts"
import * as InPlaceRetries from "./inPlaceRetries.ts"
import type { PendingCopies } from "./pendingCopies.ts"
import { deliver, deliverUnreadable } from "./recordDelivery.ts"
import type { RecordInWork } from "./recordInWork.ts"
import { originOf } from "./routing.ts"

type PerBatch<R> = Extract<Handler<R>, { readonly _tag: "PerBatch" }>

/** The parts that handle the chunks of one partition. */
interface Processor<R> {
  readonly context: ConsumerContext<R>
  readonly handler: PerBatch<R>
  readonly partition: Partition
  readonly pendingCopies: PendingCopies
}

interface Batch<R> extends Processor<R> {
  readonly records: ReadonlyArray<ConsumerRecord>
  /** The numbers of the records in the offset tracker. */
  readonly sequences: ReadonlyArray<number>
  readonly open: OpenBatch<R>
}

/** Handles a chunk in batches until it is done or the partition stops. */
export const handleChunk = Effect.fnUntraced(function* <R>(processor: Processor<R>, chunk: RecordChunk) {
  const { context, handler, partition, pendingCopies } = processor
  const receivedMillis = context.clock.currentTimeMillisUnsafe()
  const size = context.definition.maxPollRecords
  for (let from = 0; from < chunk.records.length; from += size) {
    yield* partition.runnable
    if (partition.stopping) return
    const records = chunk.records.slice(from, from + size)
    const open = handler.open(records, context.receiver, receivedMillis)
    const sequences = records.map((record) => partition.begin(record))
    context.metrics.batch(records.length)
    partition.current = records[0]
    yield* handleBatch({ ...processor, records, sequences, open })
    yield* pendingCopies.idle
    if (context.definition.ackMode === "MANUAL_IMMEDIATE") yield* context.committer.commit(partition)
    else context.committer.mark(partition)
  }
})

/** An unreadable record ends the run before it: the batch is finished in order, and a stop in its middle leaves no gap. */
const handleBatch = Effect.fnUntraced(function* <R>(batch: Batch<R>) {
  const { context, partition, records, open } = batch
  let readable: Array<number> = []
  for (const [index, record] of records.entries()) {
    reportStarted(context, partition, record)
    const undecodable = open.undecodable.get(index)
    if (undecodable === undefined) readable.push(index)
    else {
      if (!(yield* handleRun(batch, readable))) return
      readable = []
      if (!(yield* deliverUnreadable(alone(batch, index), undecodable))) return
    }
  }
  yield* handleRun(batch, readable)
})

/** Hands readable records over in one call, and again those that are left when part of them failed. False when the partition stops first. */
const handleRun = <R>(batch: Batch<R>, indices: ReadonlyArray<number>): Effect.Effect<boolean, never, R> =>
  Effect.suspend(() => {
    const delivery = begin(batch)
    return Effect.ensuring(callUntilDone(batch, indices, delivery), delivery.ensureClosed)
  })

const callUntilDone = Effect.fnUntraced(function* <R>(
  batch: Batch<R>,
  indices: ReadonlyArray<number>,
  delivery: DeliveryContext
) {
  const { context, partition } = batch
  const { clock } = context
  const nextDelay = yield* InPlaceRetries.stepper(context.definition)
  let pending = indices
  while (pending.length > 0) {
    yield* delivery.waitOutPause(partition)
    if (partition.stopping) return false
    const beforeMillis = delivery.clock.spentMillis()
    if (countsAgain(batch, delivery)) delivery.countFor(originIn(batch, pending, 0))
    const exit = yield* partition.guard(call(batch, pending, delivery), delivery)
    reportCall(context, delivery, beforeMillis)
    if (delivery.isTrial) {
      if (Exit.isSuccess(exit)) finish(batch, pending[0]!, handled(1))
      else if (!(yield* deliver(alone(batch, pending[0]!, delivery), ofOne(exit.cause)))) return false
      pending = pending.slice(1)
      delivery.begin(clock.currentTimeMillisUnsafe())
      continue
    }
    const verdict = BatchVerdict.ofExit(exit, pending)
    if (verdict !== undefined) {
      if (!(yield* follow(batch, verdict, delivery))) return false
      pending = verdict.rest
      delivery.begin(clock.currentTimeMillisUnsafe())
      continue
    }
    if (Exit.isSuccess(exit)) {
      succeedForEach(batch, pending, delivery)
      return true
    }
    let delay: number | undefined = InPlaceRetries.selfInterruptedMillis
    // A call that interrupted itself, or that never began because its partition stops, is neither success nor failure (ruling 16).
    if (delivery.wasCutOff || Failures.fromCause(exit.cause) !== undefined) {
      const { inPlace, permanent } = delivery.wasCutOff
        ? cutShort
        : context.definition.classify(exit.cause, partition.tier?.first ?? 0)
      const next = inPlace ? yield* nextDelay(clock.currentTimeMillisUnsafe()) : undefined
      delay = InPlaceRetries.withinBudget(context, partition, delivery, next)
      if (delay === undefined) {
        if (delivery.counts) delivery.countFor(originIn(batch, pending, 0))
        if (!delivery.close(permanent ? "ignored" : "failure")) return yield* oneByOne(batch, pending)
        delivery.begin(clock.currentTimeMillisUnsafe())
        continue
      }
    }
    delivery.releasePermit()
    yield* InPlaceRetries.backOff(context, partition, delivery, delay)
  }
  return true
})

const cutShort = { inPlace: false, permanent: false }

/** Finishes and settles records as the handler says. False when the partition stops first. */
const follow = Effect.fnUntraced(function* <R>(
  batch: Batch<R>,
  { done, failed, already }: BatchVerdict.Verdict,
  delivery: DeliveryContext
) {
  const spentMillis = delivery.clock.spentMillis()
  succeedForEach(batch, done, delivery)
  for (const index of already) finish(batch, index, skipped)
  for (const [index, error] of failed) {
    // A record is not charged with the time of those before it, nor with a pause of the binding.
    if (!(yield* deliver(alone(batch, index, begin(batch, spentMillis)), Cause.fail(error)))) return false
  }
  return true
})

/** Hands records over as batches of one. False when the partition stops first. */
const oneByOne = Effect.fnUntraced(function* <R>(batch: Batch<R>, indices: ReadonlyArray<number>) {
  for (const index of indices) if (!(yield* deliver(alone(batch, index), undefined, true))) return false
  return true
})

/** One call of the handler: for all of the records, or, as the trial call of a half-open breaker, for the first one alone (ruling 72). */
const call = <R>({ partition, records, open }: Batch<R>, indices: ReadonlyArray<number>, delivery: DeliveryContext) =>
  Effect.suspend(() => {
    partition.current = records[indices[0]!]
    return delivery.admit(partition, () =>
      Effect.suspend(() => open.run(delivery.isTrial ? indices.slice(0, 1) : indices))
    )
  })

/** A verdict about a batch of one is the failure of its record, and is routed as such. */
const ofOne = (cause: Cause.Cause<unknown>): Cause.Cause<unknown> =>
  BatchVerdict.of(cause, [0])?.already.length === 1 ? Cause.fail(alreadyHandled) : BatchVerdict.causeOfOne(cause)

/** Finishes records that one call has handled. */
const succeedForEach = <R>(batch: Batch<R>, indices: ReadonlyArray<number>, delivery: DeliveryContext): void => {
  delivery.succeedForEach(
    indices.length,
    countsAgain(batch, delivery) ? (at) => originIn(batch, indices, at) : undefined
  )
  for (const index of indices) finish(batch, index, handled(1))
}

/** Whether the breaker may have a failure of a record of this batch, whose outcome takes its place (ruling 72). */
const countsAgain = <R>({ partition }: Batch<R>, delivery: DeliveryContext): boolean =>
  partition.tier !== undefined && delivery.remembersFailures

const originIn = <R>(
  { context, partition, records }: Batch<R>,
  indices: ReadonlyArray<number>,
  at: number
): RecordPosition => originOf(context, partition, records[indices[at]!]!)

const begin = <R>({ context }: Batch<R>, spentMillis = 0): DeliveryContext =>
  new DeliveryContext(context.limits, context.clock.currentTimeMillisUnsafe() - spentMillis)

const finish = <R>({ pendingCopies, records, sequences }: Batch<R>, index: number, result: DeliveryResult): boolean =>
  pendingCopies.finish(records[index]!, sequences[index]!, result)

/** A record of the batch, in work by itself. */
const alone = <R>(batch: Batch<R>, index: number, delivery = begin(batch)): RecordInWork<R> => {
  const { context, partition, pendingCopies, records, sequences } = batch
  const record = records[index]!
  const gate: StartGate = partition
  partition.current = record
  return {
    ...{ context, partition, record, delivery, gate },
    attempt: () => Effect.catchCause(call(batch, [index], delivery), (cause) => Effect.failCause(ofOne(cause))),
    settle: (result) =>
      awaitsPublish(result) ? pendingCopies.add(record, sequences[index]!, result) : finish(batch, index, result)
  }
}
