/**
 * `Binding.makeBatch`: whole batches per call, and what happens when part of one fails.
 *
 * The records that the handler names as failed are tried again one by one, each with the attempts of the binding, and take their route when those
 * are used up; what is done is never handed over again. When the handler cannot say which record failed, the batch is tried again as a whole, and then
 * record by record, so that one bad record never takes its batch to the dead letter topic.
 */
import { Cause, Effect, Exit, Option } from "effect"
import type { RecordChunk } from "../Broker.ts"
import type { ConsumerRecord } from "../ConsumerRecord.ts"
import { BatchProcessing } from "../EventBusError.ts"
import { type Settled, settleFailed, settleUndecodable, stepper } from "./attempts.ts"
import type { Handler, OpenBatch } from "./definition.ts"
import { type Handling, settled, started } from "./handling.ts"
import type { Partition } from "./partition.ts"
import type { Timer } from "./places.ts"

type PerBatch<R> = Extract<Handler<R>, { readonly _tag: "PerBatch" }>

interface BatchRun<R> {
  readonly handling: Handling<R>
  readonly partition: Partition
  readonly records: ReadonlyArray<ConsumerRecord>
  readonly slots: ReadonlyArray<number>
  readonly open: OpenBatch<R>
}

/** Handles a chunk in batches until it is done or the partition stops. */
export const handleChunk = Effect.fnUntraced(function* <R>(
  handling: Handling<R>,
  handler: PerBatch<R>,
  partition: Partition,
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
    yield* handleBatch({ handling, partition, records, slots, open })
    if (handling.definition.ackMode === "MANUAL_IMMEDIATE") yield* handling.committer.commit(partition)
    else handling.committer.mark(partition)
  }
})

const handleBatch = Effect.fnUntraced(function* <R>(batch: BatchRun<R>) {
  const { handling, partition, records, open } = batch
  for (const record of records) started(handling, partition, record)
  for (const [index, undecodable] of open.undecodable) {
    const outcome = yield* settleUndecodable(handling, partition, records[index]!, undecodable)
    if (!settle(batch, index, outcome)) return
  }
  let pending = Array.from(records.keys()).filter((index) => !open.undecodable.has(index))
  const nextDelay = yield* stepper(handling.definition)
  while (pending.length > 0) {
    yield* partition.runnable
    if (partition.stopping) return
    const timer = { startedMillis: handling.clock.currentTimeMillisUnsafe() }
    const { exit, cutOff } = yield* partition.guard(runWithin(batch, pending, timer), timer)
    if (Exit.isSuccess(exit)) {
      for (const index of pending) settle(batch, index, handled)
      return
    }
    const verdict = readVerdict(exit.cause, pending)
    if (verdict !== undefined) {
      for (const index of verdict.done) settle(batch, index, handled)
      for (const [index, error] of verdict.failed) {
        const run = { cause: Cause.fail(error), cutOff: false, startedMillis: timer.startedMillis }
        if (!(yield* settleAlone(batch, index, run))) return
      }
      pending = verdict.rest
      continue
    }
    const delay = cutOff ? undefined : yield* nextDelay(handling.clock.currentTimeMillisUnsafe())
    if (delay === undefined) {
      yield* oneByOne(batch, pending)
      return
    }
    yield* partition.sleep(delay)
  }
})

/** One call of the user's code. */
const runWithin = <R>({ handling, partition, open }: BatchRun<R>, indices: ReadonlyArray<number>, timer: Timer) =>
  handling.places.within(partition, timer, () => Effect.suspend(() => open.run(indices)))

/** One call for a single record. What its verdict says about a batch of one is the failure of that record, and routed as such. */
const runAlone = <R>(batch: BatchRun<R>, index: number, timer: Timer) =>
  Effect.catchCause(runWithin(batch, [index], timer), (cause) => {
    const failed = readVerdict(cause, [index])?.failed[0]
    return Effect.failCause(failed === undefined ? cause : Cause.fail(failed[1]))
  })

const handled: Settled = { settlement: "Handled", attempts: 1, failure: undefined }

/** Books an outcome; false when the record is not finished. */
const settle = <R>(batch: BatchRun<R>, index: number, outcome: Settled): boolean => {
  settled(batch.handling, batch.partition, batch.records[index]!, outcome.settlement, outcome.attempts, outcome.failure)
  if (outcome.settlement === "Unfinished" || outcome.settlement === "Halted") return false
  batch.partition.tracker.finish(batch.slots[index]!)
  return true
}

/** Hands records over as batches of one. */
const oneByOne = Effect.fnUntraced(function* <R>(batch: BatchRun<R>, indices: ReadonlyArray<number>) {
  const { handling, partition } = batch
  for (const index of indices) {
    yield* partition.runnable
    if (partition.stopping) return
    const timer = { startedMillis: handling.clock.currentTimeMillisUnsafe() }
    const { exit, cutOff } = yield* partition.guard(runAlone(batch, index, timer), timer)
    if (Exit.isSuccess(exit)) settle(batch, index, handled)
    else if (!(yield* settleAlone(batch, index, { cause: exit.cause, cutOff, startedMillis: timer.startedMillis })))
      return
  }
})

/** Settles one failed record by itself, again after a halt; false when the partition stopped first. */
const settleAlone = Effect.fnUntraced(function* <R>(
  batch: BatchRun<R>,
  index: number,
  failed: { readonly cause: Cause.Cause<unknown>; readonly cutOff: boolean; readonly startedMillis: number }
) {
  const { handling, partition, records } = batch
  const again = (timer: Timer) => runAlone(batch, index, timer)
  let run = failed
  while (true) {
    const outcome = yield* settleFailed(handling, partition, records[index]!, run, again)
    if (settle(batch, index, outcome)) return true
    if (outcome.settlement === "Unfinished") return false
    yield* partition.runnable
    if (partition.stopping) return false
    const timer = { startedMillis: handling.clock.currentTimeMillisUnsafe() }
    const { exit, cutOff } = yield* partition.guard(again(timer), timer)
    if (Exit.isSuccess(exit)) return settle(batch, index, handled)
    run = { cause: exit.cause, cutOff, startedMillis: timer.startedMillis }
  }
})

interface Verdict {
  readonly done: ReadonlyArray<number>
  readonly failed: ReadonlyArray<readonly [index: number, error: unknown]>
  readonly rest: Array<number>
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
