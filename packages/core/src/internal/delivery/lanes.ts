/**
 * `processingOrder: "key"` and `"unordered"`: records of one partition run side by side, at most `maxInFlight` of them.
 *
 * Each key with records has a lane: a fiber that handles the key's records in order. A slow or failing key holds only its own lane. Records without a key share a
 * lane. The committed offset still follows the contiguous finished prefix. A record counts as buffered until it is settled, and no record begins while the offset
 * tracker is full: a stuck key becomes back-pressure. When the partition stops, a record still runs if a record behind it has started: the prefix then covers
 * everything that was handled, and the next owner repeats nothing. Behind an abandoned record no prefix can come about, and no record starts.
 *
 * Few lanes wait for a slot at a time. One that gets a slot while it may not start queues again behind all others: in a long queue, records would start thousands of
 * offsets behind the first unfinished one, and a crash would repeat them.
 *
 * While a copy is pending, no record starts under `MANUAL_IMMEDIATE`: a crash repeats those that are in flight, and those that have finished behind the first of them (ruling
 * 73). In a drain no record starts either, until it is known whether the prefix can cover it (ruling 83).
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { RecordChunk } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import { DeliveryContext } from "../slots/deliveryContext.ts"
import * as BesideFibers from "./besideFibers.ts"
import type { ConsumerContext } from "./consumerContext.ts"
import { LaneRecord, type PerRecord, type Shared } from "./laneRecord.ts"
import { annotated } from "./logAnnotations.ts"
import * as PendingCopies from "./pendingCopies.ts"
import { deliver } from "./recordDelivery.ts"

export interface Lanes<R> {
  /** Begins every record of a chunk, and waits while the partition is paused or full. */
  readonly take: (chunk: RecordChunk) => Effect.Effect<void, never, R>
  /** Returns when no lane has records. */
  readonly idle: Effect.Effect<void>
}

interface Lane<R> {
  /** The delivery of the record that is in work. */
  readonly delivery: DeliveryContext
  /** The first record is in work. */
  readonly waiting: Array<LaneRecord<R>>
  /** Whether records that left the lane have made room to fetch again. */
  mayFetch: boolean
}

const bytesAsText = new TextDecoder("latin1")

/** Delivers the records of a lane, one after the other. It stays in front of a record that is given up. `onEmpty` is called in the step in which the last one is done with. */
const runLane = Effect.fnUntraced(function* <R>(partition: Partition, lane: Lane<R>, onEmpty: () => void) {
  const { waiting } = lane
  for (let work = waiting[0]; work !== undefined; work = waiting[0]) {
    work.onParked = () => parkRest(partition, lane)
    const isFinished = yield* deliver(work)
    work.leaveQueue()
    if (!isFinished) return work.giveUp()
    waiting.shift()
    waiting[0]?.queue()
    if (partition.release(1, work.bytes) || lane.mayFetch) {
      lane.mayFetch = false
      yield* partition.syncFetch
    }
  }
  onEmpty()
})

/** The records behind one whose key is parked follow it, and are not delivered here. */
const parkRest = <R>(partition: Partition, lane: Lane<R>): void => {
  if (partition.order === undefined || partition.tier !== undefined || partition.stopping) return
  for (const work of lane.waiting.splice(1)) {
    if (!work.isParked) lane.waiting.push(work)
    else if (partition.release(1, work.bytes)) lane.mayFetch = true
  }
}

export const make = Effect.fnUntraced(function* <R>(
  context: ConsumerContext<R>,
  handler: PerRecord<R>,
  partition: Partition
): Effect.fn.Return<Lanes<R>, never, Scope.Scope> {
  const fibers = yield* BesideFibers.make(context)
  const lanes = new Map<string, Lane<R>>()
  const room = Latch.makeUnsafe(true)
  const { maxInFlight, processingOrder, tiers } = context.definition
  const keyed = processingOrder === "key"
  const mostRunning = Math.min(maxInFlight, tiers.ofTopic(partition.topic)?.concurrency ?? maxInFlight)
  const mostQueued = 2 * mostRunning
  const makeRoom = () => {
    // Half of the queue at once: the next chunk's records do not begin one by one.
    if (!partition.tracker.isFull() && shared.queued <= mostRunning) room.openUnsafe()
  }
  const pendingCopies = yield* PendingCopies.make(context, partition, {
    onFinished: makeRoom,
    onAbandoned: (sequence) => {
      shared.firstAbandoned = Math.min(shared.firstAbandoned, sequence)
    }
  })
  const shared: Shared<R> = {
    ...{ context, handler, partition, pendingCopies, makeRoom },
    ...{ lastStarted: -1, firstAbandoned: Number.POSITIVE_INFINITY, queued: 0 }
  }

  partition.onFinishedBeside = makeRoom

  const begin = (lane: Lane<R>, key: string | undefined): Effect.Effect<void, never, R> => {
    if (key !== undefined) lanes.set(key, lane)
    const onEmpty = () => {
      if (key !== undefined) lanes.delete(key)
    }
    const running = annotated(runLane(partition, lane, onEmpty), context, partition, () => lane.waiting[0]?.record)
    return Effect.asVoid(FiberSet.run(fibers, running))
  }

  const enqueue = (record: ConsumerRecord, bytes: number, receivedMillis: number): Effect.Effect<void, never, R> => {
    const key = keyed ? laneKey(record) : undefined
    const busy = key === undefined ? undefined : lanes.get(key)
    const lane = busy ?? { delivery: new DeliveryContext(context.limits, receivedMillis), waiting: [], mayFetch: false }
    const work = new LaneRecord(shared, lane.delivery, record, bytes, receivedMillis)
    if (work.isParked) {
      context.committer.mark(partition)
      return partition.release(1, bytes) ? partition.syncFetch : Effect.void
    }
    lane.waiting.push(work)
    if (busy !== undefined) return Effect.void
    work.queue()
    return begin(lane, key)
  }

  return {
    take: Effect.fnUntraced(function* (chunk) {
      const receivedMillis = context.clock.currentTimeMillisUnsafe()
      const bytes = chunk.bytes / chunk.records.length
      context.metrics.batch(chunk.records.length)
      for (const record of chunk.records) {
        yield* partition.runnable
        if (partition.order?.hasRoom === false) yield* partition.until(partition.order.room)
        if (partition.tracker.isFull() || shared.queued >= mostQueued) {
          room.closeUnsafe()
          yield* partition.until(room.await)
          // The record that made room starts first: a later one may fail at once, and would have to hold it back.
          yield* Effect.yieldNow
        }
        if (partition.stopping) return
        yield* enqueue(record, bytes, receivedMillis)
      }
    }),
    idle: Effect.andThen(FiberSet.awaitEmpty(fibers), pendingCopies.idle)
  }
})

const laneKey = (record: ConsumerRecord): string => (record.key === null ? "-" : `k${bytesAsText.decode(record.key)}`)
