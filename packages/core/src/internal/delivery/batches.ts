/**
 * `Binding.makeBatch`: whole batches per call, and what happens when part of one fails.
 *
 * The records that the handler names as failed are tried again one by one, each with the attempts of the binding, and take their route when those
 * are used up; what is done is never handed over again. When the handler cannot say which record failed, the batch is tried again as a whole, and then
 * record by record, so that one bad record never takes its batch to the dead letter topic.
 */
import { Cause, Effect, Exit, Option } from "effect"
import type { RecordChunk } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import { BatchProcessing } from "../../EventBusError.ts"
import * as Failure from "../failure/failure.ts"
import type { Partition } from "../partition/partition.ts"
import { awaitsPublish, type DeliveryResult, staysInPlace } from "../record/deliveryResult.ts"
import type { Handler, OpenBatch } from "../settings/bindingDefinition.ts"
import { type DeliveryContext, deliveryFrom } from "../slots/concurrencySlots.ts"
import {
  backOff,
  type FailedRun,
  pausedMillis,
  selfInterruptedMillis,
  settleFailed,
  settleUndecodable,
  slotForUndecodable,
  stepper,
  withinBudget
} from "./attempts.ts"
import { type ConsumerContext, reportCall, reportSettled, reportStarted, spentMillis } from "./consumerContext.ts"
import type { PendingCopies } from "./pendingCopies.ts"

type PerBatch<R> = Extract<Handler<R>, { readonly _tag: "PerBatch" }>

interface BatchRun<R> {
  readonly context: ConsumerContext<R>
  readonly partition: Partition
  readonly pendingCopies: PendingCopies
  readonly records: ReadonlyArray<ConsumerRecord>
  readonly sequences: ReadonlyArray<number>
  readonly open: OpenBatch<R>
}

/** Handles a chunk in batches until it is done or the partition stops. */
export const handleChunk = Effect.fnUntraced(function* <R>(
  context: ConsumerContext<R>,
  handler: PerBatch<R>,
  partition: Partition,
  pendingCopies: PendingCopies,
  chunk: RecordChunk
) {
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
    yield* handleBatch({ context, partition, pendingCopies, records, sequences, open })
    yield* pendingCopies.idle
    if (context.definition.ackMode === "MANUAL_IMMEDIATE") yield* context.committer.commit(partition)
    else context.committer.mark(partition)
  }
})

/** A record that cannot be read ends the run before it: the batch is finished in order, and a stop in its middle leaves no gap. */
const handleBatch = Effect.fnUntraced(function* <R>(batch: BatchRun<R>) {
  const { context, partition, records, open } = batch
  let run: Array<number> = []
  for (const [index, record] of records.entries()) {
    reportStarted(context, partition, record)
    if (open.skipped.has(index)) {
      finish(batch, index, skipped)
      continue
    }
    const undecodable = open.undecodable.get(index)
    if (undecodable === undefined) {
      run.push(index)
      continue
    }
    if (!(yield* handleRun(batch, run))) return
    run = []
    if (!(yield* slotForUndecodable(context, partition))) return
    if (!(yield* settle(batch, index, settleUndecodable(context, partition, record, undecodable)))) return
  }
  yield* handleRun(batch, run)
})

/** Hands readable records over in one call, and what is left of them when part of them failed; false when the partition stopped first. */
const handleRun = Effect.fnUntraced(function* <R>(batch: BatchRun<R>, indices: ReadonlyArray<number>) {
  const { context, partition } = batch
  const { clock, breaker } = context
  const nextDelay = yield* stepper(context.definition)
  const begin = () => deliveryFrom(clock.currentTimeMillisUnsafe())
  let pending = indices
  let delivery = begin()
  while (pending.length > 0) {
    delivery.startedMillis += yield* pausedMillis(context, partition)
    if (partition.stopping) return false
    const beforeMillis = spentMillis(context, delivery)
    const { exit, cutOff } = yield* partition.guard(runWithin(batch, pending, delivery), delivery)
    reportCall(context, delivery, beforeMillis)
    if (Exit.isSuccess(exit)) {
      tellDone(context, delivery, pending.length)
      for (const index of pending) finish(batch, index, handled)
      return true
    }
    const verdict = readVerdict(exit.cause, pending)
    if (verdict !== undefined) {
      if (!(yield* follow(batch, verdict, delivery))) return false
      pending = verdict.rest
      delivery = begin()
      continue
    }
    let delay: number | undefined = selfInterruptedMillis
    // One that interrupted itself, or never began, as its partition stops, is neither success nor failure (ruling 16).
    if (cutOff || Failure.fromCause(exit.cause) !== undefined) {
      const { inPlace, permanent } = cutOff ? cutShort : context.definition.classify(exit.cause, tierOf(partition))
      const next = inPlace ? yield* nextDelay(clock.currentTimeMillisUnsafe()) : undefined
      delay = withinBudget(context, partition, delivery, next)
      if (delay === undefined) {
        if (!breaker?.failed(delivery, permanent)) return yield* oneByOne(batch, pending)
        delivery = begin()
        continue
      }
    }
    breaker?.release(delivery)
    yield* backOff(context, partition, delivery, delay)
  }
  return true
})

const cutShort = { inPlace: false, permanent: false }

const tierOf = ({ tier }: Partition): number => tier?.first ?? 0

/** Does what the handler says of its records; false when the partition stopped first. */
const follow = Effect.fnUntraced(function* <R>(
  batch: BatchRun<R>,
  { done, failed }: Verdict,
  delivery: DeliveryContext
) {
  const { context } = batch
  const spent = spentMillis(context, delivery)
  tellDone(context, delivery, done.length)
  for (const index of done) finish(batch, index, handled)
  for (const [index, error] of failed) {
    // What the ones before it took, a pause of the binding included, is not its own.
    const ownDelivery = deliveryFrom(context.clock.currentTimeMillisUnsafe() - spent)
    if (!(yield* settleAlone(batch, index, { cause: Cause.fail(error), cutOff: false, delivery: ownDelivery })))
      return false
  }
  return true
})

/** The breaker counts records, in a batch as elsewhere. What the call itself has told it, or holds of it, is the first one's. */
const tellDone = <R>({ breaker }: ConsumerContext<R>, delivery: DeliveryContext, count: number): void => {
  if (breaker === undefined) return
  if (count === 0) breaker.release(delivery)
  else breaker.succeeded(delivery)
  for (let told = 1; told < count; told++) {
    const own = deliveryFrom(delivery.startedMillis)
    if (!breaker.admit(own)) return
    breaker.succeeded(own)
  }
}

/** One call of the user's code. */
const runWithin = <R>(
  { context, partition, open }: BatchRun<R>,
  indices: ReadonlyArray<number>,
  delivery: DeliveryContext
) => context.slots.within(partition, delivery, () => Effect.suspend(() => open.run(indices)))

/** One call for a single record. What its verdict says about a batch of one is the failure of that record, and routed as such. */
const runAlone = <R>(batch: BatchRun<R>, index: number, delivery: DeliveryContext) =>
  Effect.catchCause(runWithin(batch, [index], delivery), (cause) => {
    const failed = readVerdict(cause, [index])?.failed[0]
    return Effect.failCause(failed === undefined ? cause : Cause.fail(failed[1]))
  })

const skipped: DeliveryResult = { settlement: "Skipped", attempts: 0, failure: undefined }

const handled: DeliveryResult = { settlement: "Handled", attempts: 1, failure: undefined }

const finish = <R>(batch: BatchRun<R>, index: number, outcome: DeliveryResult): void => {
  reportSettled(batch.context, batch.partition, batch.records[index]!, outcome)
  batch.partition.tracker.finish(batch.sequences[index]!)
}

/** Books an outcome; false when the record is not finished, nor on its way to be. */
const settle = <R>(batch: BatchRun<R>, index: number, outcome: DeliveryResult): Effect.Effect<boolean> => {
  const { context, partition, pendingCopies, records, sequences } = batch
  if (awaitsPublish(outcome)) return pendingCopies.add(records[index]!, sequences[index]!, outcome)
  return Effect.sync(() => {
    if (outcome.settlement !== "Abandoned" && !staysInPlace(outcome)) {
      finish(batch, index, outcome)
      return true
    }
    reportSettled(context, partition, records[index]!, outcome)
    return false
  })
}

/** Hands records over as batches of one; false when the partition stopped first. */
const oneByOne = Effect.fnUntraced(function* <R>(batch: BatchRun<R>, indices: ReadonlyArray<number>) {
  const { context, partition } = batch
  for (const index of indices) {
    yield* partition.runnable
    if (partition.stopping) return false
    const delivery = deliveryFrom(context.clock.currentTimeMillisUnsafe())
    const { exit, cutOff } = yield* partition.guard(runAlone(batch, index, delivery), delivery)
    reportCall(context, delivery)
    if (Exit.isSuccess(exit)) finish(batch, index, handled)
    else if (!(yield* settleAlone(batch, index, { cause: exit.cause, cutOff, delivery }))) return false
  }
  return true
})

/** Settles one failed record by itself, again where it stayed in its place; false when the partition stopped first. */
const settleAlone = Effect.fnUntraced(function* <R>(batch: BatchRun<R>, index: number, failed: FailedRun) {
  const { context, partition, records } = batch
  let run = failed
  while (true) {
    const outcome = yield* settleFailed(context, partition, records[index]!, run, (delivery) =>
      runAlone(batch, index, delivery)
    )
    if (yield* settle(batch, index, outcome)) return true
    if (!staysInPlace(outcome)) return false
    yield* partition.runnable
    if (partition.stopping) return false
    const delivery = deliveryFrom(context.clock.currentTimeMillisUnsafe())
    const { exit, cutOff } = yield* partition.guard(runAlone(batch, index, delivery), delivery)
    reportCall(context, delivery)
    if (Exit.isSuccess(exit)) {
      finish(batch, index, handled)
      return true
    }
    run = { cause: exit.cause, cutOff, delivery }
  }
})

interface Verdict {
  readonly done: ReadonlyArray<number>
  readonly failed: ReadonlyArray<readonly [index: number, error: unknown]>
  readonly rest: ReadonlyArray<number>
}

/** What the handler said about the records it was given; undefined when it said nothing, or nothing that makes sense. */
const readVerdict = (cause: Cause.Cause<unknown>, given: ReadonlyArray<number>): Verdict | undefined => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (!(error instanceof BatchProcessing)) return undefined
  const failures = new Map(error.failures.map((failure) => [failure.index, failure.error]))
  if (Array.from(failures.keys()).some((index) => !Number.isInteger(index) || index < 0 || index >= given.length))
    return undefined
  const end = error.kind === "from" ? error.failedIndex : given.length
  const reached = given.slice(0, end)
  const failed = error.kind === "from" ? [error.failedIndex] : Array.from(failures.keys()).sort((a, b) => a - b)
  return {
    done: reached.filter((_, at) => !failures.has(at)),
    failed: failed.map((at) => [given[at]!, failures.get(at)] as const),
    rest: error.kind === "from" ? given.slice(error.failedIndex + 1) : []
  }
}
