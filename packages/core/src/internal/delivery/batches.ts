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
import { isParked, type Settled, staysInPlace } from "../record/deliveryResult.ts"
import type { Handler, OpenBatch } from "../settings/bindingDefinition.ts"
import { type Timer, timerFrom } from "../slots/concurrencySlots.ts"
import {
  backOff,
  type FailedRun,
  pausedMillis,
  selfInterruptedMillis,
  settleFailed,
  settleUndecodable,
  stepper,
  turnOfUndecodable,
  withinBudget
} from "./attempts.ts"
import { called, type Handling, settled, spentMillis, started } from "./consumerContext.ts"
import type { Outstanding } from "./pendingCopies.ts"

type PerBatch<R> = Extract<Handler<R>, { readonly _tag: "PerBatch" }>

interface BatchRun<R> {
  readonly handling: Handling<R>
  readonly partition: Partition
  readonly outstanding: Outstanding
  readonly records: ReadonlyArray<ConsumerRecord>
  readonly slots: ReadonlyArray<number>
  readonly open: OpenBatch<R>
}

/** Handles a chunk in batches until it is done or the partition stops. */
export const handleChunk = Effect.fnUntraced(function* <R>(
  handling: Handling<R>,
  handler: PerBatch<R>,
  partition: Partition,
  outstanding: Outstanding,
  chunk: RecordChunk
) {
  const receivedMillis = handling.clock.currentTimeMillisUnsafe()
  const size = handling.definition.maxPollRecords
  for (let from = 0; from < chunk.records.length; from += size) {
    yield* partition.runnable
    if (partition.stopping) return
    const records = chunk.records.slice(from, from + size)
    const open = handler.open(records, handling.receiver, receivedMillis)
    const slots = records.map((record) => partition.begin(record))
    handling.metrics.batch(records.length)
    partition.current = records[0]
    yield* handleBatch({ handling, partition, outstanding, records, slots, open })
    yield* outstanding.idle
    if (handling.definition.ackMode === "MANUAL_IMMEDIATE") yield* handling.committer.commit(partition)
    else handling.committer.mark(partition)
  }
})

/** A record that cannot be read ends the run before it: the batch is finished in order, and a stop in its middle leaves no gap. */
const handleBatch = Effect.fnUntraced(function* <R>(batch: BatchRun<R>) {
  const { handling, partition, records, open } = batch
  let run: Array<number> = []
  for (const [index, record] of records.entries()) {
    started(handling, partition, record)
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
    if (!(yield* turnOfUndecodable(handling, partition))) return
    if (!(yield* settle(batch, index, settleUndecodable(handling, partition, record, undecodable)))) return
  }
  yield* handleRun(batch, run)
})

/** Hands readable records over in one call, and what is left of them when part of them failed; false when the partition stopped first. */
const handleRun = Effect.fnUntraced(function* <R>(batch: BatchRun<R>, indices: ReadonlyArray<number>) {
  const { handling, partition } = batch
  const { clock, breaker } = handling
  const nextDelay = yield* stepper(handling.definition)
  const begin = () => timerFrom(clock.currentTimeMillisUnsafe())
  let pending = indices
  let timer = begin()
  while (pending.length > 0) {
    timer.startedMillis += yield* pausedMillis(handling, partition)
    if (partition.stopping) return false
    const beforeMillis = spentMillis(handling, timer)
    const { exit, cutOff } = yield* partition.guard(runWithin(batch, pending, timer), timer)
    called(handling, timer, beforeMillis)
    if (Exit.isSuccess(exit)) {
      tellDone(handling, timer, pending.length)
      for (const index of pending) finish(batch, index, handled)
      return true
    }
    const verdict = readVerdict(exit.cause, pending)
    if (verdict !== undefined) {
      if (!(yield* follow(batch, verdict, timer))) return false
      pending = verdict.rest
      timer = begin()
      continue
    }
    let delay: number | undefined = selfInterruptedMillis
    // One that interrupted itself, or never began, as its partition stops, is neither success nor failure (ruling 16).
    if (cutOff || Failure.fromCause(exit.cause) !== undefined) {
      const { inPlace, permanent } = cutOff ? cutShort : handling.definition.classify(exit.cause, tierOf(partition))
      const next = inPlace ? yield* nextDelay(clock.currentTimeMillisUnsafe()) : undefined
      delay = withinBudget(handling, partition, timer, next)
      if (delay === undefined) {
        if (!breaker?.failed(timer, permanent)) return yield* oneByOne(batch, pending)
        timer = begin()
        continue
      }
    }
    breaker?.release(timer)
    yield* backOff(handling, partition, timer, delay)
  }
  return true
})

const cutShort = { inPlace: false, permanent: false }

const tierOf = ({ tier }: Partition): number => tier?.first ?? 0

/** Does what the handler says of its records; false when the partition stopped first. */
const follow = Effect.fnUntraced(function* <R>(batch: BatchRun<R>, { done, failed }: Verdict, timer: Timer) {
  const { handling } = batch
  const spent = spentMillis(handling, timer)
  tellDone(handling, timer, done.length)
  for (const index of done) finish(batch, index, handled)
  for (const [index, error] of failed) {
    // What the ones before it took, a pause of the binding included, is not its own.
    const ownTimer = timerFrom(handling.clock.currentTimeMillisUnsafe() - spent)
    if (!(yield* settleAlone(batch, index, { cause: Cause.fail(error), cutOff: false, timer: ownTimer }))) return false
  }
  return true
})

/** The breaker counts records, in a batch as elsewhere. What the call itself has told it, or holds of it, is the first one's. */
const tellDone = <R>({ breaker }: Handling<R>, timer: Timer, count: number): void => {
  if (breaker === undefined) return
  if (count === 0) breaker.release(timer)
  else breaker.succeeded(timer)
  for (let told = 1; told < count; told++) {
    const own = timerFrom(timer.startedMillis)
    if (!breaker.admit(own)) return
    breaker.succeeded(own)
  }
}

/** One call of the user's code. */
const runWithin = <R>({ handling, partition, open }: BatchRun<R>, indices: ReadonlyArray<number>, timer: Timer) =>
  handling.places.within(partition, timer, () => Effect.suspend(() => open.run(indices)))

/** One call for a single record. What its verdict says about a batch of one is the failure of that record, and routed as such. */
const runAlone = <R>(batch: BatchRun<R>, index: number, timer: Timer) =>
  Effect.catchCause(runWithin(batch, [index], timer), (cause) => {
    const failed = readVerdict(cause, [index])?.failed[0]
    return Effect.failCause(failed === undefined ? cause : Cause.fail(failed[1]))
  })

const skipped: Settled = { settlement: "Skipped", attempts: 0, failure: undefined }

const handled: Settled = { settlement: "Handled", attempts: 1, failure: undefined }

const finish = <R>(batch: BatchRun<R>, index: number, outcome: Settled): void => {
  settled(batch.handling, batch.partition, batch.records[index]!, outcome)
  batch.partition.tracker.finish(batch.slots[index]!)
}

/** Books an outcome; false when the record is not finished, nor on its way to be. */
const settle = <R>(batch: BatchRun<R>, index: number, outcome: Settled): Effect.Effect<boolean> => {
  const { handling, partition, outstanding, records, slots } = batch
  if (isParked(outcome)) return outstanding.add(records[index]!, slots[index]!, outcome)
  return Effect.sync(() => {
    if (outcome.settlement !== "Unfinished" && !staysInPlace(outcome)) {
      finish(batch, index, outcome)
      return true
    }
    settled(handling, partition, records[index]!, outcome)
    return false
  })
}

/** Hands records over as batches of one; false when the partition stopped first. */
const oneByOne = Effect.fnUntraced(function* <R>(batch: BatchRun<R>, indices: ReadonlyArray<number>) {
  const { handling, partition } = batch
  for (const index of indices) {
    yield* partition.runnable
    if (partition.stopping) return false
    const timer = timerFrom(handling.clock.currentTimeMillisUnsafe())
    const { exit, cutOff } = yield* partition.guard(runAlone(batch, index, timer), timer)
    called(handling, timer)
    if (Exit.isSuccess(exit)) finish(batch, index, handled)
    else if (!(yield* settleAlone(batch, index, { cause: exit.cause, cutOff, timer }))) return false
  }
  return true
})

/** Settles one failed record by itself, again where it stayed in its place; false when the partition stopped first. */
const settleAlone = Effect.fnUntraced(function* <R>(batch: BatchRun<R>, index: number, failed: FailedRun) {
  const { handling, partition, records } = batch
  let run = failed
  while (true) {
    const outcome = yield* settleFailed(handling, partition, records[index]!, run, (timer) =>
      runAlone(batch, index, timer)
    )
    if (yield* settle(batch, index, outcome)) return true
    if (!staysInPlace(outcome)) return false
    yield* partition.runnable
    if (partition.stopping) return false
    const timer = timerFrom(handling.clock.currentTimeMillisUnsafe())
    const { exit, cutOff } = yield* partition.guard(runAlone(batch, index, timer), timer)
    called(handling, timer)
    if (Exit.isSuccess(exit)) {
      finish(batch, index, handled)
      return true
    }
    run = { cause: exit.cause, cutOff, timer }
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
