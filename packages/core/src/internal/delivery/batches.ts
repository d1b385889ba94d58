/**
 * `Binding.makeBatch`: one call of the handler for many records, with partial failure.
 *
 * Records that the handler names as failed are tried again one by one, each with the attempts of the binding, and take their route when those are used up. A record
 * that is done is never handed over again. When the handler cannot say which record failed, the batch is tried again as a whole, and then record by record: one
 * bad record never takes its batch to the dead letter topic.
 */
import { Cause, Effect, Exit } from "effect"
import type { RecordChunk } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as Failures from "../failure/failure.ts"
import type { Partition } from "../partition/partition.ts"
import { awaitsPublish, type DeliveryResult, handled } from "../record/deliveryResult.ts"
import type { Handler, OpenBatch } from "../settings/bindingDefinition.ts"
import { DeliveryContext } from "../slots/deliveryContext.ts"
import type { StartGate } from "../slots/startGate.ts"
import * as BatchVerdict from "./batchVerdict.ts"
import { type ConsumerContext, reportCall, reportStarted } from "./consumerContext.ts"
import * as InPlaceRetries from "./inPlaceRetries.ts"
import type { PendingCopies } from "./pendingCopies.ts"
import { deliver, deliverUnreadable } from "./recordDelivery.ts"
import type { RecordInWork } from "./recordInWork.ts"

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
    const beforeMillis = delivery.spentMillis()
    const exit = yield* partition.guard(call(batch, pending, delivery), delivery)
    reportCall(context, delivery, beforeMillis)
    if (Exit.isSuccess(exit)) {
      delivery.succeedForEach(pending.length)
      for (const index of pending) finish(batch, index, handled(1))
      return true
    }
    const verdict = BatchVerdict.of(exit.cause, pending)
    if (verdict !== undefined) {
      if (!(yield* follow(batch, verdict, delivery))) return false
      pending = verdict.rest
      delivery.begin(clock.currentTimeMillisUnsafe())
      continue
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
  { done, failed }: BatchVerdict.Verdict,
  delivery: DeliveryContext
) {
  const spentMillis = delivery.spentMillis()
  delivery.succeedForEach(done.length)
  for (const index of done) finish(batch, index, handled(1))
  for (const [index, error] of failed) {
    // A record is not charged with the time of those before it, nor with a pause of the binding.
    if (!(yield* deliver(alone(batch, index, spentMillis), Cause.fail(error)))) return false
  }
  return true
})

/** Hands records over as batches of one. False when the partition stops first. */
const oneByOne = Effect.fnUntraced(function* <R>(batch: Batch<R>, indices: ReadonlyArray<number>) {
  for (const index of indices) if (!(yield* deliver(alone(batch, index)))) return false
  return true
})

/** One call of the handler. */
const call = <R>({ partition, open }: Batch<R>, indices: ReadonlyArray<number>, delivery: DeliveryContext) =>
  delivery.admit(partition, () => Effect.suspend(() => open.run(indices)))

const begin = <R>({ context }: Batch<R>, spentMillis = 0): DeliveryContext =>
  new DeliveryContext(context.limits, context.clock.currentTimeMillisUnsafe() - spentMillis)

const finish = <R>({ pendingCopies, records, sequences }: Batch<R>, index: number, result: DeliveryResult): boolean =>
  pendingCopies.finish(records[index]!, sequences[index]!, result)

/** A record of the batch, in work by itself. `spentMillis`: how much of its processing budget it has used. */
const alone = <R>(batch: Batch<R>, index: number, spentMillis = 0): RecordInWork<R> => {
  const { context, partition, pendingCopies, records, sequences } = batch
  const record = records[index]!
  const delivery = begin(batch, spentMillis)
  const gate: StartGate = partition
  return {
    ...{ context, partition, record, delivery, gate },
    // A verdict about a batch of one is the failure of its record, and is routed as such.
    attempt: () =>
      Effect.catchCause(call(batch, [index], delivery), (cause) => {
        const failed = BatchVerdict.of(cause, [index])?.failed[0]
        return Effect.failCause(failed === undefined ? cause : Cause.fail(failed[1]))
      }),
    settle: (result) =>
      awaitsPublish(result) ? pendingCopies.add(record, sequences[index]!, result) : finish(batch, index, result)
  }
}
