/**
 * The delivering half of ordered delivery: events in memory, one lane per aggregate, workers, and what a result means.
 *
 * Lanes keep the order: an event starts when the one before it has ended. A failed one holds its aggregate back, or is passed over.
 */
import { type Cause, type Clock, Effect, Exit, Random } from "effect"
import type { EventEnvelope } from "../../EventEnvelope.ts"
import type { EventRetryPolicy } from "../../EventRetryPolicy.ts"
import type { MetricsExporter } from "../../MetricsExporter.ts"
import { aggregateKey } from "../base/bucketOf.ts"
import { decideFailure, type FailureOutcome } from "../dispatch/delivery.ts"
import { type DoneMarker, makeDoneMarker, retryBackoff } from "../dispatch/doneMarker.ts"
import { openFence, type StoreShape } from "../store/contract.ts"
import type { OutboxEvent } from "../store/rows.ts"
import type { BucketLease } from "./bucketLeases.ts"
import { type Lane, Lanes } from "./lanes.ts"
import type { ReadPositions } from "./readPositions.ts"

export interface InFlightEvent {
  readonly event: OutboxEvent
  readonly key: string
  readonly tenure: BucketLease
}

export interface DeliverySettings {
  readonly workerCount: number
  readonly maxAttempts: number
  readonly retryPolicy: EventRetryPolicy
  readonly afterFailure: "hold" | "passOver"
  readonly pipelining: number
  /** Undefined where one relay holds everything for ever. */
  readonly owner: string | undefined
}

interface Parts {
  readonly store: StoreShape
  readonly metrics: MetricsExporter
  readonly clock: Clock.Clock
  readonly reader: ReadPositions
  readonly deliver: (event: EventEnvelope) => Effect.Effect<unknown, unknown>
  /** An event has left memory, or something began to wait for its time. */
  readonly onChange: (what: "left" | "waiting") => void
}

/** Events of one aggregate that a worker handles before other aggregates get their turn. */
const laneTurn = 100
/** Until an event is looked at again whose predecessor is still under way from an older lease, or whose mark failed. */
const recheckMillis = 500

export class OrderedDelivery {
  readonly doneMarker: DoneMarker<InFlightEvent>
  readonly #parts: Parts
  readonly #settings: DeliverySettings
  readonly #lanes = new Lanes<InFlightEvent>()
  readonly #held = new Map<string, InFlightEvent>()
  /** Under way from leases that are over: their aggregates start again only when these have ended. */
  readonly #orphans = new Set<InFlightEvent>()
  readonly #finishedDuringRead = new Set<string>()
  #reading = false
  #closing = false

  constructor(parts: Parts, settings: DeliverySettings) {
    this.#parts = parts
    this.#settings = settings
    this.doneMarker = makeDoneMarker<InFlightEvent>({
      writers: 1,
      mark: (items) => {
        // What a late lease finished is left as it is: the bucket's new owner decides.
        const current = items.filter((item) => !item.tenure.lost)
        const ids = current.map((item) => item.event.eventId)
        const places = current.map((item) => item.event.rowAddress)
        return parts.store.markDone(ids, this.#fence(current), places)
      },
      onMarked: (item) => this.#settled(item)
    })
  }

  get size(): number {
    return this.#held.size
  }

  isIdle(tenure: BucketLease): boolean {
    for (const item of this.#held.values()) if (item.tenure === tenure) return false
    return true
  }

  now(): bigint {
    return this.#parts.clock.monotonicTimeNanosUnsafe()
  }

  isValid(tenure: BucketLease): boolean {
    return !tenure.lost && !tenure.stopped && this.now() < tenure.validUntilNanos
  }

  close(): void {
    this.#closing = true
    this.#lanes.close()
  }

  /** Runs a read of pending rows: what finishes meanwhile may still be in its result, and is not taken again. */
  whileReading<A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      this.#reading = true
      return Effect.ensuring(
        read,
        Effect.sync(() => {
          this.#reading = false
          this.#finishedDuringRead.clear()
        })
      )
    })
  }

  /** These leases are over; what is under way from them ends by itself. */
  leasesEnded(tenures: ReadonlyArray<BucketLease>): void {
    if (tenures.length === 0) return
    for (const item of this.#held.values()) if (tenures.includes(item.tenure)) this.#orphans.add(item)
  }

  /** Takes a row in, in the order in which it was read. */
  accept(event: OutboxEvent, tenure: BucketLease): void {
    const { reader, metrics } = this.#parts
    const key = aggregateKey(event.envelope)
    reader.advance(event.bucket, event.seq)
    if (reader.isWaiting(key) || reader.isWaiting(event.eventId)) return
    if (this.#hasOrphan(key)) {
      this.#wait(key, event, recheckMillis)
      return
    }
    if (this.#held.has(event.eventId) || this.#finishedDuringRead.has(event.eventId)) return
    if (event.dueInMillis > 0) {
      this.#waitForRetry({ event, key }, event.dueInMillis)
      return
    }
    const item = { event, key, tenure }
    this.#held.set(event.eventId, item)
    metrics.incrementColdEnqueued()
    // With one worker all aggregates share a lane: the order is the insertion order over all of them.
    this.#lanes.push(this.#settings.workerCount === 1 ? "" : key, item)
  }

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

  #hasOrphan(key: string): boolean {
    for (const item of this.#orphans) if (item.key === key) return true
    return false
  }

  #settled(item: InFlightEvent): void {
    this.#held.delete(item.event.eventId)
    this.#orphans.delete(item)
    if (this.#reading) this.#finishedDuringRead.add(item.event.eventId)
    this.#parts.onChange("left")
  }

  #fence(items: ReadonlyArray<InFlightEvent>) {
    const { owner } = this.#settings
    if (owner === undefined) return openFence
    return {
      _tag: "Buckets",
      owner,
      epochs: new Map(items.map(({ tenure }) => [tenure.bucket, tenure.epoch]))
    } as const
  }

  #wait(key: string, event: OutboxEvent, delayMillis: number): void {
    const dueNanos = this.now() + BigInt(Math.ceil(delayMillis * 1e6))
    this.#parts.reader.wait(key, { bucket: event.bucket, seq: event.seq, dueNanos })
    this.#parts.onChange("waiting")
  }

  /** A retried event waits; with `hold` its whole aggregate does. */
  #waitForRetry(item: Pick<InFlightEvent, "event" | "key">, delayMillis: number): void {
    this.#wait(this.#settings.afterFailure === "hold" ? item.key : item.event.eventId, item.event, delayMillis)
  }

  #holdBack(lane: Lane<InFlightEvent>, item: InFlightEvent, delayMillis: number): void {
    this.#waitForRetry(item, delayMillis)
    if (this.#settings.afterFailure === "passOver") return
    for (const behind of this.#lanes.remove(lane, (other) => other.key === item.key)) this.#settled(behind)
  }

  #runLane(lane: Lane<InFlightEvent>): Effect.Effect<void> {
    let left = laneTurn
    const step = () =>
      this.#settings.pipelining > 1 ? this.#handleTogether(lane) : this.#handle(lane, lane.events.shift()!)
    return Effect.ensuring(
      Effect.whileLoop({ while: () => left-- > 0 && lane.events.length > 0, body: step, step: () => {} }),
      Effect.sync(() => this.#lanes.done(lane))
    )
  }

  /** An event of a lease that ran out is not started, and neither is anything behind it: such a lease is never taken up again. */
  #startable(item: InFlightEvent): boolean {
    if (this.isValid(item.tenure)) return true
    item.tenure.stopped = true
    this.#settled(item)
    return false
  }

  #succeeded(item: InFlightEvent): void {
    this.#parts.metrics.incrementDispatchSuccess()
    this.doneMarker.add(item)
  }

  #handle(lane: Lane<InFlightEvent>, item: InFlightEvent): Effect.Effect<void> {
    if (!this.#startable(item)) return Effect.void
    return Effect.matchCauseEffect(this.#parts.deliver(item.event.envelope), {
      onSuccess: () => {
        this.#succeeded(item)
        return this.doneMarker.awaitCapacity
      },
      onFailure: (cause) => this.#failed(lane, item, cause)
    })
  }

  /**
   * Several events of one lane at once, started in order. What succeeded behind a failure is done all the same; what failed behind
   * it is read again in its place.
   */
  #handleTogether(lane: Lane<InFlightEvent>): Effect.Effect<void> {
    const items = lane.events.splice(0, this.#settings.pipelining).filter((item) => this.#startable(item))
    const all = Effect.forEach(items, (item) => Effect.exit(this.#parts.deliver(item.event.envelope)), {
      concurrency: "unbounded"
    })
    return all.pipe(
      Effect.flatMap((exits) =>
        Effect.forEach(items, (item, i) => this.#settleTogether(lane, item, exits[i]!), { discard: true })
      ),
      Effect.andThen(this.doneMarker.awaitCapacity)
    )
  }

  #settleTogether(
    lane: Lane<InFlightEvent>,
    item: InFlightEvent,
    exit: Exit.Exit<unknown, unknown>
  ): Effect.Effect<void> {
    if (Exit.isSuccess(exit)) return Effect.sync(() => this.#succeeded(item))
    // A predecessor of its aggregate failed too: this one is read again behind it.
    if (this.#parts.reader.isWaiting(item.key)) return Effect.sync(() => this.#settled(item))
    return this.#failed(lane, item, exit.cause)
  }

  #failed(lane: Lane<InFlightEvent>, item: InFlightEvent, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    const { metrics } = this.#parts
    return Effect.gen({ self: this }, function* () {
      const outcome = decideFailure(cause, item.event.attempts, this.#settings, yield* Random.next)
      if (outcome._tag === "Postpone") {
        yield* Effect.logWarning(
          `outbox: ${item.event.envelope.eventType} ${item.event.eventId} waits: ${outcome.error}`
        )
        this.#holdBack(lane, item, outcome.delayMillis)
        return this.#settled(item)
      }
      const marked = yield* this.#mark(item, outcome)
      if (outcome._tag === "Retry") this.#holdBack(lane, item, outcome.delayMillis)
      else if (!marked) this.#holdBack(lane, item, recheckMillis)
      if (outcome._tag === "Dead") metrics.incrementDispatchDead()
      else metrics.incrementDispatchFailure()
      this.#settled(item)
    })
  }

  /** False when the database did not take the mark. */
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
