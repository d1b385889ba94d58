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
import { Undecodable } from "../record/decoding.ts"
import { awaitsPublish, type DeliveryResult } from "../record/deliveryResult.ts"
import type { Handler } from "../settings/bindingDefinition.ts"
import { DeliveryContext } from "../slots/deliveryContext.ts"
import type { StartGate } from "../slots/startGate.ts"
import * as BesideFibers from "./besideFibers.ts"
import { type ConsumerContext, reportStarted } from "./consumerContext.ts"
import { annotated } from "./logAnnotations.ts"
import * as PendingCopies from "./pendingCopies.ts"
import { deliver } from "./recordDelivery.ts"
import type { RecordInWork } from "./recordInWork.ts"

type PerRecord<R> = Extract<Handler<R>, { readonly _tag: "PerRecord" }>

export interface Lanes<R> {
  /** Begins every record of a chunk, and waits while the partition is paused or full. */
  readonly take: (chunk: RecordChunk) => Effect.Effect<void, never, R>
  /** Returns when no lane has records. */
  readonly idle: Effect.Effect<void>
}

/** The records of a partition share this while they run side by side. */
interface Shared<R> {
  readonly context: ConsumerContext<R>
  readonly handler: PerRecord<R>
  readonly partition: Partition
  readonly pendingCopies: PendingCopies.PendingCopies
  /** The sequence of the last record, in offset order, that has started. */
  lastStarted: number
  /** The sequence of the first abandoned record. */
  firstAbandoned: number
  /** Lanes whose record has not started. */
  queued: number
  /** Lets the next record begin if there is room for it. */
  readonly makeRoom: () => void
}

/** A record in its lane. A stop holds it only when no record behind it has started. */
class LaneRecord<R> implements RecordInWork<R>, StartGate {
  readonly record: ConsumerRecord
  /** Its share of the bytes of its chunk. */
  readonly bytes: number
  readonly delivery: DeliveryContext
  readonly mayWait = true
  /** Called when the record has left for another topic. */
  onParked: () => void = () => {}
  readonly #shared: Shared<R>
  readonly #sequence: number
  readonly #receivedMillis: number
  #hasStarted = false
  #isQueued = false

  constructor(
    shared: Shared<R>,
    delivery: DeliveryContext,
    record: ConsumerRecord,
    bytes: number,
    receivedMillis: number
  ) {
    this.record = record
    this.bytes = bytes
    this.delivery = delivery
    this.#shared = shared
    this.#sequence = shared.partition.begin(record)
    this.#receivedMillis = receivedMillis
  }

  get context(): ConsumerContext<R> {
    return this.#shared.context
  }

  /** Whether the record is not to be delivered now, since its key is parked. */
  get isParked(): boolean {
    const { order } = this.partition
    return order !== undefined && !order.isQuiet && order.take(this.record, this.#sequence)
  }

  get partition(): Partition {
    return this.#shared.partition
  }

  get gate(): StartGate {
    return this
  }

  get current(): ConsumerRecord {
    return this.record
  }

  get stopping(): boolean {
    const { partition } = this.#shared
    return partition.stopping && !(partition.drainable && this.#isInPrefix)
  }

  /** Whether the finished prefix can come to cover a started record behind this one. */
  get #isInPrefix(): boolean {
    const { lastStarted, firstAbandoned } = this.#shared
    const isBefore = this.#sequence < lastStarted || this.record.offset < (this.partition.order?.freedTo ?? 0n)
    return isBefore && this.#sequence < firstAbandoned
  }

  get ending(): boolean {
    return this.partition.stopping
  }

  get open(): boolean {
    return (this.partition.open || this.partition.stopping) && !this.#waitsForCopies
  }

  /** A record that is in flight goes on: its next attempt waits for no copy. */
  get #waitsForCopies(): boolean {
    const { partition, pendingCopies } = this.#shared
    return pendingCopies.hasPending() && !this.#hasStarted && (pendingCopies.waitsForEach || partition.stopping)
  }

  get runnable(): Effect.Effect<void> {
    return this.#waitsForCopies ? this.#shared.pendingCopies.settled : this.partition.runnable
  }

  onStop(listener: () => void): () => void {
    return this.partition.onStop(listener)
  }

  attempt(isFirst: boolean): Effect.Effect<unknown, unknown, R> {
    return this.delivery.admit(this, () => {
      if (isFirst) this.#onStarted()
      const invoked = this.#shared.handler.invoke(this.record, this.context.receiver, this.#receivedMillis)
      return invoked instanceof Undecodable ? Effect.fail(invoked) : invoked
    })
  }

  /** It is the first of its lane. */
  queue(): void {
    this.#isQueued = true
    this.#shared.queued++
  }

  /** It has started, or is settled without a start. */
  leaveQueue(): void {
    if (!this.#isQueued) return
    this.#isQueued = false
    this.#shared.queued--
    this.#shared.makeRoom()
  }

  #onStarted(): void {
    const shared = this.#shared
    this.#hasStarted = true
    this.leaveQueue()
    shared.lastStarted = Math.max(shared.lastStarted, this.#sequence)
    reportStarted(shared.context, shared.partition, this.record)
  }

  settle(result: DeliveryResult): boolean | Effect.Effect<boolean> {
    const { context, partition, pendingCopies } = this.#shared
    if (awaitsPublish(result)) {
      const added = pendingCopies.add(this.record, this.#sequence, result)
      // In this step: a record of the key that comes now follows behind those that are queued.
      this.onParked()
      return added
    }
    if (!pendingCopies.finish(this.record, this.#sequence, result)) return false
    if (context.definition.ackMode === "MANUAL_IMMEDIATE") context.committer.hasten(partition)
    else context.committer.mark(partition)
    return true
  }

  giveUp(): void {
    this.#shared.firstAbandoned = Math.min(this.#shared.firstAbandoned, this.#sequence)
  }
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

  /** The records behind one whose key is parked follow it, and are not delivered here. */
  const parkRest = (lane: Lane<R>): void => {
    if (partition.order === undefined || partition.tier !== undefined || partition.stopping) return
    for (const work of lane.waiting.splice(1)) {
      if (!work.isParked) lane.waiting.push(work)
      else if (partition.release(1, work.bytes)) lane.mayFetch = true
    }
  }

  const runLane = Effect.fnUntraced(function* (lane: Lane<R>, key: string | undefined) {
    const { waiting } = lane
    for (let work = waiting[0]; work !== undefined; work = waiting[0]) {
      work.onParked = () => parkRest(lane)
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
    if (key !== undefined) lanes.delete(key)
  })

  const begin = (lane: Lane<R>, key: string | undefined): Effect.Effect<void, never, R> => {
    if (key !== undefined) lanes.set(key, lane)
    const running = annotated(runLane(lane, key), context, partition, () => lane.waiting[0]?.record)
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
