/**
 * The delivering half of ordered delivery: the events in memory, the workers that take lanes, and what a delivery's result means.
 *
 * A lane keeps the order: an event starts when the one before it has ended. A failed event holds its aggregate back, or is passed over.
 */
import { type Cause, type Clock, Effect, Exit, Random } from "effect"
import type { EventRetryPolicy } from "../../EventRetryPolicy.ts"
import type { MetricsExporter } from "../../MetricsExporter.ts"
import { aggregateKey } from "../base/bucketOf.ts"
import type { CallListener } from "../delivery/callListener.ts"
import { type DoneMarker, makeDoneMarker, retryBackoff } from "../delivery/doneMarker.ts"
import { decideFailure, type FailureOutcome } from "../delivery/failureOutcome.ts"
import { type Fence, openFence, type StoreShape } from "../store/contract.ts"
import type { OutboxEvent } from "../store/rows.ts"
import type { BucketLease } from "./bucketLeases.ts"
import { type Lane, Lanes } from "./lanes.ts"
import type { ReadPositions } from "./readPositions.ts"

/** An event in memory, with its aggregate and the lease that it was read under. */
interface InFlightEvent {
  readonly event: OutboxEvent
  readonly key: string
  readonly lease: BucketLease
}

interface DeliverySettings {
  readonly workerCount: number
  readonly maxAttempts: number
  readonly retryPolicy: EventRetryPolicy
  readonly afterFailure: "hold" | "passOver"
  readonly pipelining: number
  /** The name of this node's leases. Undefined without leases. */
  readonly owner: string | undefined
}

interface Parts {
  readonly store: StoreShape
  readonly metrics: MetricsExporter
  readonly clock: Clock.Clock
  readonly positions: ReadPositions
  readonly callListener: CallListener
  /** An event has left memory, or a delay has begun. */
  readonly onChange: (change: "left" | "delayed") => void
}

/** The most events of one aggregate that a worker handles before other aggregates get their turn. */
const laneBatch = 100
/** The delay before an event is read again whose predecessor is still in flight under an earlier lease, or whose mark failed. */
const recheckMillis = 500

export class OrderedDelivery {
  readonly doneMarker: DoneMarker<InFlightEvent>
  readonly #parts: Parts
  readonly #settings: DeliverySettings
  readonly #lanes = new Lanes<InFlightEvent>()
  readonly #inFlight = new Map<string, InFlightEvent>()
  /** Events in flight under leases that have ended. Their aggregates start again only after these events have ended. */
  readonly #underEndedLeases = new Set<InFlightEvent>()
  readonly #finishedDuringRead = new Set<string>()
  #isReading = false
  #closing = false

  constructor(parts: Parts, settings: DeliverySettings) {
    this.#parts = parts
    this.#settings = settings
    this.doneMarker = makeDoneMarker<InFlightEvent>({
      writers: 1,
      mark: (items) => {
        // An event that finished after its lease was lost is not marked: the bucket's new owner decides.
        const current = items.filter((item) => !item.lease.lost)
        const ids = current.map((item) => item.event.eventId)
        const rowAddresses = current.map((item) => item.event.rowAddress)
        return parts.store.markDone(ids, this.#fence(current), rowAddresses)
      },
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

  /** The monotonic time in nanoseconds. */
  now(): bigint {
    return this.#parts.clock.monotonicTimeNanosUnsafe()
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
    const { positions, metrics } = this.#parts
    const key = aggregateKey(event.envelope)
    positions.advance(event.bucket, event.seq)
    if (positions.isDelayed(key) || positions.isDelayed(event.eventId)) return
    if (this.#isUnderEndedLease(key)) {
      this.#delay(key, event, recheckMillis)
      return
    }
    if (this.#inFlight.has(event.eventId) || this.#finishedDuringRead.has(event.eventId)) return
    if (event.dueInMillis > 0) {
      this.#delayUntilRetry({ event, key }, event.dueInMillis)
      return
    }
    const item = { event, key, lease }
    this.#inFlight.set(event.eventId, item)
    metrics.incrementColdEnqueued()
    // With one worker, all aggregates share a lane: the order is the insertion order over all of them.
    this.#lanes.push(this.#settings.workerCount === 1 ? "" : key, item)
  }

  /** Handles one lane after the other until the delivery closes and the lanes are empty. */
  readonly worker: Effect.Effect<void> = Effect.suspend(() =>
    Effect.whileLoop({
      while: () => !this.#closing || this.#lanes.hasWork,
      body: () => {
        const lane = this.#lanes.take()
        return lane === undefined ? this.#lanes.awaitReady : this.#runLane(lane)
      },
      step: () => {}
    })
  )

  #isUnderEndedLease(key: string): boolean {
    for (const item of this.#underEndedLeases) if (item.key === key) return true
    return false
  }

  #finish(item: InFlightEvent): void {
    this.#inFlight.delete(item.event.eventId)
    this.#underEndedLeases.delete(item)
    if (this.#isReading) this.#finishedDuringRead.add(item.event.eventId)
    this.#parts.onChange("left")
  }

  #fence(items: ReadonlyArray<InFlightEvent>): Fence {
    const { owner } = this.#settings
    if (owner === undefined) return openFence
    return { _tag: "Buckets", owner, epochs: new Map(items.map(({ lease }) => [lease.bucket, lease.epoch])) }
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

  #runLane(lane: Lane<InFlightEvent>): Effect.Effect<void> {
    let left = laneBatch
    const step = () =>
      this.#settings.pipelining > 1 ? this.#handleTogether(lane) : this.#handle(lane, lane.events.shift()!)
    return Effect.ensuring(
      Effect.whileLoop({ while: () => left-- > 0 && lane.events.length > 0, body: step, step: () => {} }),
      Effect.sync(() => this.#lanes.done(lane))
    )
  }

  /** An event under an expired lease is not started, and nothing behind it is: the lease is stopped for good. */
  #startable(item: InFlightEvent): boolean {
    if (this.isValid(item.lease)) return true
    item.lease.stopped = true
    this.#finish(item)
    return false
  }

  #succeeded(item: InFlightEvent): void {
    this.#parts.metrics.incrementDispatchSuccess()
    this.doneMarker.add(item)
  }

  #handle(lane: Lane<InFlightEvent>, item: InFlightEvent): Effect.Effect<void> {
    if (!this.#startable(item)) return Effect.void
    return Effect.matchCauseEffect(this.#parts.callListener(item.event.envelope), {
      onSuccess: () => {
        this.#succeeded(item)
        return this.doneMarker.awaitCapacity
      },
      onFailure: (cause) => this.#failed(lane, item, cause)
    })
  }

  /**
   * Handles several events of one lane at once, started in order. An event that succeeded behind a failed one is done. An event that
   * failed behind a failed one is read again in its order.
   */
  #handleTogether(lane: Lane<InFlightEvent>): Effect.Effect<void> {
    const items = lane.events.splice(0, this.#settings.pipelining).filter((item) => this.#startable(item))
    const all = Effect.forEach(items, (item) => Effect.exit(this.#parts.callListener(item.event.envelope)), {
      concurrency: "unbounded"
    })
    return all.pipe(
      Effect.flatMap((exits) =>
        Effect.forEach(items, (item, i) => this.#endTogether(lane, item, exits[i]!), { discard: true })
      ),
      Effect.andThen(this.doneMarker.awaitCapacity)
    )
  }

  #endTogether(lane: Lane<InFlightEvent>, item: InFlightEvent, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> {
    if (Exit.isSuccess(exit)) return Effect.sync(() => this.#succeeded(item))
    // A predecessor of the same aggregate failed too: this event is read again behind it.
    if (this.#parts.positions.isDelayed(item.key)) return Effect.sync(() => this.#finish(item))
    return this.#failed(lane, item, exit.cause)
  }

  #failed(lane: Lane<InFlightEvent>, item: InFlightEvent, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    const { metrics } = this.#parts
    return Effect.gen({ self: this }, function* () {
      const outcome = decideFailure(cause, item.event.attempts, this.#settings, yield* Random.next)
      if (outcome._tag === "Postpone") {
        const { eventType, eventId } = item.event.envelope
        yield* Effect.logWarning(`outbox: ${eventType} ${eventId} waits: ${outcome.error}`)
        this.#holdBack(lane, item, outcome.delayMillis)
        return this.#finish(item)
      }
      const marked = yield* this.#mark(item, outcome)
      if (outcome._tag === "Retry") this.#holdBack(lane, item, outcome.delayMillis)
      else if (!marked) this.#holdBack(lane, item, recheckMillis)
      if (outcome._tag === "Dead") metrics.incrementDispatchDead()
      else metrics.incrementDispatchFailure()
      this.#finish(item)
    })
  }

  /** False when the database refused the mark. */
  #mark(item: InFlightEvent, outcome: Exclude<FailureOutcome, { _tag: "Postpone" }>): Effect.Effect<boolean> {
    const { store } = this.#parts
    const { eventId, envelope, attempts } = item.event
    const fence = this.#fence([item])
    const mark =
      outcome._tag === "Dead"
        ? Effect.andThen(
            Effect.logError(
              `outbox: ${envelope.eventType} ${eventId} is DEAD after ${attempts + 1} deliveries: ${outcome.error}`
            ),
            store.markDead(eventId, outcome.error, fence)
          )
        : store.markRetry(eventId, outcome.delayMillis, outcome.error, fence, attempts)
    return Effect.retry(mark, retryBackoff).pipe(
      Effect.as(true),
      Effect.catchCause((cause) => Effect.as(Effect.logError(`outbox: marking ${eventId} failed`, cause), false))
    )
  }
}
