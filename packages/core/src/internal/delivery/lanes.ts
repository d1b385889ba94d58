/**
 * `processingOrder: "key"` and `"unordered"`: records of one partition run side by side, bounded by `maxInFlight`.
 *
 * Each key with work has a lane: a fiber that handles the key's records in order. A slow or failing key holds only its own lane. Records without a
 * key share one. Offsets still follow the contiguous prefix. A record counts as buffered until it is settled, and intake stops while the tracker is full,
 * so a stuck key becomes back-pressure. A stop lets the records end that have a started one behind them: the prefix then covers everything that was
 * handled, and the next owner repeats nothing. Behind a record that is given up there is no such prefix, and none begins.
 */
import { Effect, Exit, FiberSet, Latch, type Scope } from "effect"
import type { RecordChunk } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import { Undecodable } from "../record/decoding.ts"
import { awaitsPublish, type DeliveryResult, staysInPlace } from "../record/deliveryResult.ts"
import type { Handler } from "../settings/bindingDefinition.ts"
import { type DeliveryContext, deliveryFrom, type StartGate } from "../slots/concurrencySlots.ts"
import { missedSlot, settleFailed, settleUndecodable, waitsForSlot } from "./attempts.ts"
import { type ConsumerContext, reportCall, reportSettled, reportStarted } from "./consumerContext.ts"
import { annotated } from "./logAnnotations.ts"
import * as PendingCopies from "./pendingCopies.ts"

type PerRecord<R> = Extract<Handler<R>, { readonly _tag: "PerRecord" }>

interface Task {
  readonly record: ConsumerRecord
  /** Its share of the chunk that it came with. */
  readonly bytes: number
  readonly sequence: number
  readonly receivedMillis: number
}

export interface Lanes<R> {
  /** Begins every record of a chunk, waiting where the partition is paused or full. */
  readonly take: (chunk: RecordChunk) => Effect.Effect<void, never, R>
  /** Returns when no lane has work. */
  readonly idle: Effect.Effect<void>
}

const bytesAsText = new TextDecoder("latin1")

export const make = Effect.fnUntraced(function* <R>(
  context: ConsumerContext<R>,
  handler: PerRecord<R>,
  partition: Partition
): Effect.fn.Return<Lanes<R>, never, Scope.Scope> {
  const fibers = yield* FiberSet.make<void>()
  const lanes = new Map<string, Array<Task>>()
  const room = Latch.makeUnsafe(true)
  const keyed = context.definition.processingOrder === "key"

  let lastStarted = -1
  let firstGivenUp = Number.POSITIVE_INFINITY

  /** Whether the prefix can come to cover what has started behind it. */
  const isInPrefix = ({ sequence }: Task) => sequence < lastStarted && sequence < firstGivenUp
  const onGivenUp = (sequence: number) => {
    firstGivenUp = Math.min(firstGivenUp, sequence)
  }

  const gateOf = (task: Task): StartGate => ({
    get stopping() {
      return partition.stopping && !(partition.drainable && isInPrefix(task))
    },
    get ending() {
      return partition.stopping
    },
    get open() {
      return partition.open || partition.stopping
    },
    mayWait: true,
    get runnable() {
      return partition.runnable
    },
    onStop: (listener) => partition.onStop(listener)
  })
  const onStarted = (task: Task) => {
    lastStarted = Math.max(lastStarted, task.sequence)
    reportStarted(context, partition, task.record)
  }

  const makeRoom = () => {
    if (!partition.tracker.isFull()) room.openUnsafe()
  }
  const pendingCopies = yield* PendingCopies.make(context, partition, { onFinished: makeRoom, onGivenUp })

  const finish = (task: Task) => {
    partition.tracker.finish(task.sequence)
    makeRoom()
    if (context.definition.ackMode === "MANUAL_IMMEDIATE") context.committer.hasten(partition)
    else context.committer.mark(partition)
  }

  /** Handles one record until it is settled; false when the partition stopped first. */
  const handle = Effect.fnUntraced(function* (task: Task) {
    const { record } = task
    const gate = gateOf(task)
    while (true) {
      yield* partition.runnable
      if (gate.stopping) break
      const outcome = yield* run(context, handler, partition, task, gate, () => onStarted(task))
      if (awaitsPublish(outcome)) return yield* pendingCopies.add(record, task.sequence, outcome)
      reportSettled(context, partition, record, outcome)
      if (outcome.settlement === "Abandoned") break
      if (staysInPlace(outcome)) continue
      finish(task)
      return true
    }
    onGivenUp(task.sequence)
    return false
  })

  const runLane = Effect.fnUntraced(function* (lane: Array<Task>, key: string | undefined) {
    for (let task = lane[0]; task !== undefined; task = lane[0]) {
      if (!(yield* handle(task))) return
      lane.shift()
      if (partition.release(1, task.bytes)) yield* partition.syncFetch
    }
    if (key !== undefined) lanes.delete(key)
  })

  const enqueue = (task: Task): Effect.Effect<void, never, R> => {
    const key = keyed ? laneKey(task.record) : undefined
    const lane = key === undefined ? undefined : lanes.get(key)
    if (lane !== undefined) {
      lane.push(task)
      return Effect.void
    }
    const fresh = [task]
    if (key !== undefined) lanes.set(key, fresh)
    const running = annotated(runLane(fresh, key), context, partition, () => fresh[0]?.record)
    return Effect.asVoid(FiberSet.run(fibers, running))
  }

  return {
    take: Effect.fnUntraced(function* (chunk) {
      const receivedMillis = context.clock.currentTimeMillisUnsafe()
      const bytes = chunk.bytes / chunk.records.length
      context.metrics.batch(chunk.records.length)
      for (const record of chunk.records) {
        yield* partition.runnable
        if (partition.tracker.isFull()) {
          room.closeUnsafe()
          yield* partition.until(room.await)
        }
        if (partition.stopping) return
        yield* enqueue({ record, bytes, sequence: partition.begin(record), receivedMillis })
      }
    }),
    idle: Effect.andThen(FiberSet.awaitEmpty(fibers), pendingCopies.idle)
  }
})

const laneKey = (record: ConsumerRecord): string => (record.key === null ? "-" : `k${bytesAsText.decode(record.key)}`)

/** One delivery: the first run, and the slow path when it fails. */
const run = Effect.fnUntraced(function* <R>(
  context: ConsumerContext<R>,
  handler: PerRecord<R>,
  partition: Partition,
  task: Task,
  gate: StartGate,
  onStarted: () => void
): Effect.fn.Return<DeliveryResult, never, R> {
  const { record } = task
  const delivery = deliveryFrom(context.clock.currentTimeMillisUnsafe())
  let undecodable: Undecodable | undefined
  const invoke = (): Effect.Effect<unknown, unknown, R> => {
    const invoked = handler.invoke(record, context.receiver, task.receivedMillis)
    if (!(invoked instanceof Undecodable)) return invoked
    undecodable = invoked
    return Effect.fail(invoked)
  }
  const again = (delivery: DeliveryContext) => context.slots.within(gate, delivery, invoke)
  const first = context.slots.within(gate, delivery, () => {
    onStarted()
    return invoke()
  })
  const { exit, cutOff } = yield* partition.guard(first, delivery)
  if (undecodable === undefined) reportCall(context, delivery)
  if (Exit.isSuccess(exit)) return { settlement: "Handled", attempts: 1, failure: undefined }
  if (undecodable === undefined)
    return yield* settleFailed(context, partition, record, { cause: exit.cause, cutOff, delivery }, again)
  return missedSlot(context, delivery) ? waitsForSlot : settleUndecodable(context, partition, record, undecodable)
})
