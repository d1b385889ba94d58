/**
 * The delivering half of ordered delivery: the events in memory, and what the result of a delivery means.
 *
 * A lane keeps the order: an event starts when the one before it has ended. A failed event holds its aggregate back, or is passed over.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { EventRetryPolicy } from "../../EventRetryPolicy.ts"
import { aggregateKey } from "../base/bucketOf.ts"
import { logText } from "../base/failureText.ts"
import { logError } from "../base/log.ts"
import { type BatchMarker, makeBatchMarker, retriedMark } from "../delivery/batchMarker.ts"
import type { CallListener } from "../delivery/callListener.ts"
import type { DeliveryTools } from "../delivery/deliveryTools.ts"
import { decideFailure, type FailureOutcome, reportFailure } from "../delivery/failureOutcome.ts"
import { Outages } from "../delivery/outages.ts"
import type { StoreShape } from "../store/contract.ts"
import type { OutboxEvent } from "../store/rows.ts"
import type { BucketLease } from "./bucketLeases.ts"
import { type Lane, Lanes } from "./lanes.ts"
import { type InFlightEvent, LaneWorker } from "./laneWorker.ts"
import { type LeaseSettings, OrderedMarks } from "./orderedMarks.ts"
import type { ReadPositions } from "./readPositions.ts"

interface DeliverySettings {
  readonly workerCount: number
  readonly maxAttempts: number
  readonly retryPolicy: EventRetryPolicy
  readonly afterFailure: "hold" | "passOver"
  readonly pipelining: number
  /** The name of this node's leases, and their length. Undefined without leases. */
  readonly leases: LeaseSettings | undefined
}

interface Parts {
  readonly store: StoreShape
  readonly tools: DeliveryTools
  readonly positions: ReadPositions
  readonly callListener: CallListener
  /** An event has left memory, or a delay has begun. */
  readonly onChange: (change: "left" | "delayed") => void
}

/** The delay before an event is read again whose predecessor is still in flight under an earlier lease, or whose mark failed. */
const recheckMillis = 500

export class OrderedDelivery {
  readonly doneMarker: BatchMarker<InFlightEvent>
  readonly #parts: Parts
  readonly #settings: DeliverySettings
  readonly #lanes = new Lanes<InFlightEvent>()
  readonly #inFlight = new Map<string, InFlightEvent>()
  /** Events in flight under leases that have ended. Their aggregates start again only after these events have ended. */
  readonly #underEndedLeases = new Set<InFlightEvent>()
  readonly #finishedDuringRead = new Set<string>()
  readonly #outages: Outages
  readonly #marks: OrderedMarks
  #isReading = false
  #closing = false

  constructor(parts: Parts, settings: DeliverySettings) {
    this.#parts = parts
    this.#settings = settings
    this.#outages = new Outages(parts.tools)
    this.#marks = new OrderedMarks(parts.store, settings.leases)
    this.doneMarker = makeBatchMarker<InFlightEvent>({
      writers: 1,
      what: "delivered",
      mark: (items) => this.#marks.markDone(items),
      onMarked: (item) => this.#finish(item)
    })
  }

  /** Events in memory. */
  get size(): number {
    return this.#inFlight.size
  }

  /** Whether nothing of this lease is in flight. */
  isIdle(lease: BucketLease): boolean {
    for (const item of this.#inFlight.values()) if (item.lease === lease) return false
    return true
  }

  /** From now on the started events under these leases are marked under their row locks. Returns their ids. */
  beginHandover(leases: ReadonlyArray<BucketLease>): ReadonlyArray<string> {
    const started = [...this.#inFlight.values()].filter((item) => item.started && leases.includes(item.lease))
    for (const item of started) item.handedOver = true
    return started.map((item) => item.event.eventId)
  }

  /** The ids of events in flight whose buckets were handed over. Their row locks have to be renewed. */
  get handedOver(): ReadonlyArray<string> {
    return [...this.#inFlight.values()].filter((item) => item.handedOver).map((item) => item.event.eventId)
  }

  /** The monotonic time in nanoseconds. */
  now(): bigint {
    return this.#parts.tools.clock.monotonicTimeNanosUnsafe()
  }

  /** Whether events may be started under this lease. */
  isValid(lease: BucketLease): boolean {
    return !lease.lost && !lease.stopped && this.now() < lease.validUntilNanos
  }

  /** Takes no more events. Workers end when the lanes are empty. */
  close(): void {
    this.#closing = true
    this.#lanes.close()
  }

  /** Runs a read of pending rows. An event that finishes meanwhile may still be in its result, and is not accepted again. */
  whileReading<A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      this.#isReading = true
      return Effect.ensuring(
        read,
        Effect.sync(() => {
          this.#isReading = false
          this.#finishedDuringRead.clear()
        })
      )
    })
  }

  /** Notes that these leases have ended. Events in flight under them end by themselves. */
  leasesEnded(leases: ReadonlyArray<BucketLease>): void {
    if (leases.length === 0) return
    for (const item of this.#inFlight.values()) if (leases.includes(item.lease)) this.#underEndedLeases.add(item)
  }

  /** Accepts a row, in the order in which it was read. */
  accept(event: OutboxEvent, lease: BucketLease): void {
    const { positions, tools } = this.#parts
    const key = aggregateKey(event.envelope)
    positions.advance(event.bucket, event.seq)
    if (positions.isDelayed(key) || positions.isDelayed(event.eventId)) return
    if (this.#isUnderEndedLease(key) || this.#marks.isLockedByOther(event)) {
      this.#delay(key, event, recheckMillis)
      return
    }
    if (this.#inFlight.has(event.eventId) || this.#finishedDuringRead.has(event.eventId)) return
    if (event.dueInMillis > 0) {
      this.#delayUntilRetry({ event, key }, event.dueInMillis)
      return
    }
    const item = { event, key, lease, started: false, handedOver: false }
    this.#inFlight.set(event.eventId, item)
    tools.metrics.incrementColdEnqueued()
    tools.metrics.recordQueueDepths(0, this.#inFlight.size)
    // With one worker, all aggregates share a lane: the order is the insertion order over all of them.
    this.#lanes.push(this.#settings.workerCount === 1 ? "" : key, item)
  }

  /** A worker, to be run under the supervisor. */
  makeWorker(): LaneWorker {
    return new LaneWorker({
      lanes: this.#lanes,
      decisions: {
        startable: (lane, item) => this.#startable(lane, item),
        succeeded: (item) => this.#succeeded(item),
        failed: (lane, item, cause) => this.#failed(lane, item, cause),
        failedBehind: (lane, item, cause) => this.#failedBehind(lane, item, cause),
        awaitCapacity: this.doneMarker.awaitCapacity
      },
      callListener: this.#parts.callListener,
      pipelining: this.#settings.pipelining,
      isClosing: () => this.#closing
    })
  }

  #isUnderEndedLease(key: string): boolean {
    for (const item of this.#underEndedLeases) if (item.key === key) return true
    return false
  }

  #finish(item: InFlightEvent): void {
    this.#inFlight.delete(item.event.eventId)
    this.#parts.tools.metrics.recordQueueDepths(0, this.#inFlight.size)
    this.#underEndedLeases.delete(item)
    if (this.#isReading) this.#finishedDuringRead.add(item.event.eventId)
    this.#parts.onChange("left")
  }

  #delay(key: string, event: OutboxEvent, delayMillis: number): void {
    const dueNanos = this.now() + BigInt(Math.ceil(delayMillis * 1e6))
    this.#parts.positions.delay(key, { bucket: event.bucket, seq: event.seq, dueNanos })
    this.#parts.onChange("delayed")
  }

  /** Delays a failed event. With `hold` its whole aggregate is delayed. */
  #delayUntilRetry(item: Pick<InFlightEvent, "event" | "key">, delayMillis: number): void {
    this.#delay(this.#settings.afterFailure === "hold" ? item.key : item.event.eventId, item.event, delayMillis)
  }

  #holdBack(lane: Lane<InFlightEvent>, item: InFlightEvent, delayMillis: number): void {
    this.#delayUntilRetry(item, delayMillis)
    if (this.#settings.afterFailure === "passOver") return
    for (const behind of this.#lanes.remove(lane, (other) => other.key === item.key)) this.#finish(behind)
  }

  /**
   * An event under an expired lease is not started, and nothing behind it is: the lease is stopped for good. An event whose destination
   * is down is held back without a worker.
   */
  #startable(lane: Lane<InFlightEvent>, item: InFlightEvent): boolean {
    if (!this.isValid(item.lease)) item.lease.stopped = true
    else if (!this.#parts.positions.isDelayed(item.key)) {
      const hold = this.#outages.hold(item.event.envelope)
      if (hold === undefined) {
        item.started = true
        return true
      }
      this.#holdBack(lane, item, hold.delayMillis)
    }
    this.#finish(item)
    return false
  }

  /** Hands a delivered event to the done marker. */
  #succeeded(item: InFlightEvent): void {
    this.#outages.succeeded(item.event.envelope)
    this.#parts.tools.metrics.incrementDispatchSuccess()
    this.doneMarker.add(item)
  }

  /** A failure behind another one of the same aggregate: the event is read again behind it. Otherwise as `failed`. */
  #failedBehind(lane: Lane<InFlightEvent>, item: InFlightEvent, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    if (!this.#parts.positions.isDelayed(item.key)) return this.#failed(lane, item, cause)
    return Effect.sync(() => {
      this.#parts.tools.metrics.incrementDispatchFailure()
      this.#finish(item)
    })
  }

  /** Decides and marks what becomes of a failed event. When that dies, the worker lives on: the aggregate waits, and the event is read again. */
  #failed(lane: Lane<InFlightEvent>, item: InFlightEvent, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    return Effect.catchCause(this.#decided(lane, item, cause), (defect) => {
      this.#holdBack(lane, item, recheckMillis)
      this.#finish(item)
      return logError(`outbox: ${item.event.eventId} failed, could not be marked, and comes again: ${logText(defect)}`)
    })
  }

  #decided(lane: Lane<InFlightEvent>, item: InFlightEvent, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    const { clock, guard, metrics } = this.#parts.tools
    return Effect.gen({ self: this }, function* () {
      const { envelope, attempts } = item.event
      const outcome = decideFailure(cause, attempts, this.#settings, yield* Random.next, guard)
      yield* reportFailure(envelope, cause, attempts, outcome, this.#settings, guard, clock.currentTimeMillisUnsafe())
      const delayMillis = this.#outages.failed(envelope, outcome)
      if (outcome._tag === "Postpone") {
        metrics.incrementDispatchFailure()
        this.#holdBack(lane, item, delayMillis)
        if (item.handedOver) yield* this.#marks.releaseLock(item)
        return this.#finish(item)
      }
      const changed = yield* this.#mark(item, outcome)
      if (outcome._tag === "Retry") this.#holdBack(lane, item, outcome.delayMillis)
      else if (changed === undefined) this.#holdBack(lane, item, recheckMillis)
      if (outcome._tag === "Retry") metrics.incrementDispatchFailure()
      else if (changed !== undefined && changed > 0) metrics.incrementDispatchDead()
      this.#finish(item)
    })
  }

  /** Returns rows changed; undefined when the database refused the mark. */
  #mark(
    item: InFlightEvent,
    outcome: Exclude<FailureOutcome, { _tag: "Postpone" }>
  ): Effect.Effect<number | undefined> {
    const { store } = this.#parts
    const { eventId, attempts } = item.event
    const mark = () =>
      this.#marks.change(item, (fence) =>
        outcome._tag === "Dead"
          ? store.markDead(eventId, outcome.error, fence)
          : store.markRetry(eventId, outcome.delayMillis, outcome.error, fence, attempts)
      )
    return retriedMark(eventId, mark).pipe(
      Effect.catchCause((cause) =>
        Effect.as(logError(`outbox: marking ${eventId} failed: ${logText(cause)}`), undefined)
      )
    )
  }
}
