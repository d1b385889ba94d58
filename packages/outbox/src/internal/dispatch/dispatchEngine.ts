/** The way of one event through a dispatcher: queued, delivered, marked. */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { EventRetryPolicy } from "../../EventRetryPolicy.ts"
import type { InFlightTracker } from "../../InFlightTracker.ts"
import type { OutboxStoreError } from "../../OutboxError.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import { logText } from "../base/failureText.ts"
import { logError } from "../base/log.ts"
import { type BatchMarker, makeBatchMarker, retriedMark } from "../delivery/batchMarker.ts"
import type { CallListener } from "../delivery/callListener.ts"
import type { DeliveryTools } from "../delivery/deliveryTools.ts"
import { decideFailure, reportFailure } from "../delivery/failureOutcome.ts"
import { Outages } from "../delivery/outages.ts"
import { writtenAtNanos } from "../delivery/writeTimes.ts"
import { type Fence, openFence, type StoreShape } from "../store/contract.ts"
import { heldClaim } from "./claimRenewal.ts"
import { type FairQueue, makeFairQueue, type Source } from "./fairQueue.ts"
import { type ClaimLocking, type InFlightEvent, InFlightEvents } from "./inFlightEvents.ts"
import { PolledEvents } from "./polledEvents.ts"

interface EngineSettings {
  readonly maxAttempts: number
  readonly hotQueueCapacity: number
  readonly coldQueueCapacity: number
  readonly retryPolicy: EventRetryPolicy
  readonly claimLocking?: ClaimLocking
  readonly onRetryScheduled?: () => void
}

interface Parts {
  readonly store: StoreShape
  readonly tools: DeliveryTools
  /** The user's own tracker, if there is one. Without it, `InFlightEvents` decides alone. */
  readonly tracker: InFlightTracker | undefined
  readonly callListener: CallListener
}

/** One worker of an engine. */
interface Worker {
  /** Handles one event after the other until the engine closes and the queues are empty. */
  readonly run: Effect.Effect<void>
  /** After the worker's fiber died: the event whose listener it ran has failed. */
  readonly repair: (cause: Cause.Cause<unknown>) => Effect.Effect<"restart" | "backOff">
}

/** The event whose listener a worker runs. A fiber may die without finalizers, and then the event would be lost. */
interface Current {
  event: InFlightEvent | undefined
}

/** An event that waits for its destination. */
interface Postponed {
  readonly event: InFlightEvent
  readonly delayMillis: number
  readonly error: string
}

export class DispatchEngine {
  readonly queue: FairQueue<InFlightEvent>
  readonly doneMarker: BatchMarker<InFlightEvent>
  readonly postponer: BatchMarker<Postponed>
  readonly inFlight = new InFlightEvents()
  readonly #parts: Parts
  readonly #settings: EngineSettings
  readonly #fence: Fence
  /** Without claims only: a claim that is still held shows that nobody else took its event. */
  readonly #polled = new PolledEvents()
  readonly #outages: Outages
  #closing = false

  constructor(parts: Parts, settings: EngineSettings) {
    this.#parts = parts
    this.#settings = settings
    this.#outages = new Outages(parts.tools)
    const claim = settings.claimLocking
    this.#fence = claim === undefined ? openFence : { _tag: "Claim", owner: claim.owner }
    this.queue = makeFairQueue({ hot: settings.hotQueueCapacity, cold: settings.coldQueueCapacity })
    this.doneMarker = makeBatchMarker<InFlightEvent>({
      writers: 2,
      what: "delivered",
      mark: (events) =>
        parts.store.markDone(
          events.map((e) => e.envelope.eventId),
          this.#fence,
          events.map((e) => e.rowAddress)
        ),
      onMarked: (event) => this.#finish(event)
    })
    this.postponer = makeBatchMarker<Postponed>({
      writers: 1,
      what: "postponed",
      mark: (postponed) => this.#markPostponed(postponed),
      onMarked: ({ event }) => this.#finish(event)
    })
  }

  get closing(): boolean {
    return this.#closing
  }

  /** Takes no more events. Workers end when the queues are empty. */
  close(): void {
    this.#closing = true
    this.queue.close()
  }

  /** False when the queue is full or closing. An event that is in flight already counts as taken. */
  enqueue(envelope: EventEnvelope, source: Source, attempts: number, rowAddress?: string): boolean {
    const { tools, tracker } = this.#parts
    const { clock, guard, metrics } = tools
    const { claimLocking } = this.#settings
    const id = envelope.eventId
    if (this.#closing) return false
    const state = this.inFlight.stateOf(id, attempts)
    // With claims, the row was claimed anew: a refusal makes the poller release it and read again. If it counted as taken, nobody would handle it until the claim expires.
    if (state === "finished" || state === "marking") return claimLocking === undefined
    if (state === "inFlight" && tracker === undefined) return true
    if (source === "HOT" && claimLocking === undefined) {
      const hasTaken = this.#polled.hasTaken(id, writtenAtNanos(envelope))
      if (hasTaken !== false) return hasTaken === true
    }
    const capacity = source === "HOT" ? this.#settings.hotQueueCapacity : this.#settings.coldQueueCapacity
    if (this.queue.size(source) >= capacity) return state === "inFlight"
    if (
      tracker !== undefined &&
      !guard.call("inFlightTracker.tryAcquire", () => tracker.tryAcquire(id), isBoolean, true)
    ) {
      return true
    }
    const nowNanos = clock.monotonicTimeNanosUnsafe()
    if (source === "COLD" && claimLocking === undefined) this.#polled.add(id, nowNanos)
    const claimedAtNanos = (source === "HOT" ? writtenAtNanos(envelope) : this.inFlight.pollBeganNanos) ?? nowNanos
    const event = { envelope, source, attempts, rowAddress, claimedAtNanos, isBeingMarked: false }
    this.inFlight.add(event)
    this.queue.offer(source, event)
    if (source === "HOT") metrics.incrementHotEnqueued()
    else metrics.incrementColdEnqueued()
    this.#recordDepths()
    if (source === "HOT" || !this.inFlight.isPolling) this.queue.wake()
    return true
  }

  #recordDepths(): void {
    this.#parts.tools.metrics.recordQueueDepths(this.queue.size("HOT"), this.queue.size("COLD"))
  }

  #finish(event: InFlightEvent): void {
    const { tools, tracker } = this.#parts
    if (tracker !== undefined) {
      tools.guard.run("inFlightTracker.release", () => tracker.release(event.envelope.eventId))
    }
    this.inFlight.finish(event)
  }

  /** Handles an event. One whose claim is lost is not started. */
  #handle(event: InFlightEvent, current: Current): Effect.Effect<void> {
    const { store, tools } = this.#parts
    const { claimLocking } = this.#settings
    const hold = claimLocking === undefined ? undefined : heldClaim(store, tools, event, claimLocking)
    if (hold === undefined) return this.#deliver(event, current)
    return Effect.flatMap(hold, (isHeld) =>
      isHeld ? this.#deliver(event, current) : Effect.sync(() => this.#finish(event))
    )
  }

  #deliver(event: InFlightEvent, current: Current): Effect.Effect<void> {
    const hold = this.#outages.hold(event.envelope)
    if (hold !== undefined) return this.#postpone({ event, ...hold })
    current.event = event
    return Effect.matchCauseEffect(this.#parts.callListener(event.envelope), {
      onSuccess: () => {
        current.event = undefined
        this.#outages.succeeded(event.envelope)
        this.#parts.tools.metrics.incrementDispatchSuccess()
        this.doneMarker.add(event)
        return this.doneMarker.awaitCapacity
      },
      onFailure: (cause) => {
        current.event = undefined
        return this.#failed(event, cause)
      }
    })
  }

  /** Frees the worker: the event waits in the table. */
  #postpone(postponed: Postponed): Effect.Effect<void> {
    postponed.event.isBeingMarked = true
    this.postponer.add(postponed)
    return this.postponer.awaitCapacity
  }

  /** One statement per wait and error; there are few of both in a batch. */
  #markPostponed(postponed: ReadonlyArray<Postponed>): Effect.Effect<void, OutboxStoreError> {
    const { store, tools } = this.#parts
    const groups = Map.groupBy(postponed, ({ delayMillis, error }) => `${Math.ceil(delayMillis / 100)} ${error}`)
    return Effect.forEach(
      groups.values(),
      (group) => {
        const ids = group.map(({ event }) => event.envelope.eventId)
        return store.postpone(ids, group[0]!.delayMillis, group[0]!.error, this.#fence)
      },
      { discard: true }
    ).pipe(Effect.andThen(Effect.sync(() => tools.guard.run("onRetryScheduled", this.#settings.onRetryScheduled))))
  }

  /** Decides and marks what becomes of a failed event. When that dies, the worker lives on: the event leaves memory, and its row comes again. */
  #failed(event: InFlightEvent, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    return Effect.catchCause(this.#decided(event, cause), (defect) => {
      this.#finish(event)
      return logError(
        `outbox: ${event.envelope.eventId} failed, could not be marked, and comes again: ${logText(defect)}`
      )
    })
  }

  #decided(event: InFlightEvent, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    const { store, tools } = this.#parts
    const { clock, guard, metrics } = tools
    return Effect.flatMap(Random.next, (random) => {
      const { envelope, attempts } = event
      const outcome = decideFailure(cause, attempts, this.#settings, random, guard)
      const nowMillis = clock.currentTimeMillisUnsafe()
      const delayMillis = this.#outages.failed(envelope, outcome)
      const reported = reportFailure(envelope, cause, attempts, outcome, this.#settings, guard, nowMillis)
      switch (outcome._tag) {
        case "Postpone":
          metrics.incrementDispatchFailure()
          return Effect.andThen(reported, this.#postpone({ event, delayMillis, error: outcome.error }))
        case "Dead":
          return reported.pipe(
            Effect.andThen(this.#mark(event, () => store.markDead(envelope.eventId, outcome.error, this.#fence))),
            Effect.flatMap((changed) => (changed > 0 ? Effect.sync(metrics.incrementDispatchDead) : Effect.void))
          )
        case "Retry": {
          return reported.pipe(
            Effect.andThen(
              this.#mark(event, () =>
                store.markRetry(envelope.eventId, outcome.delayMillis, outcome.error, this.#fence, attempts)
              )
            ),
            Effect.andThen(
              Effect.sync(() => {
                metrics.incrementDispatchFailure()
                guard.run("onRetryScheduled", this.#settings.onRetryScheduled)
              })
            )
          )
        }
      }
    })
  }

  /** Returns rows changed; 0 when the database refused the mark. */
  #mark(event: InFlightEvent, mark: () => ReturnType<StoreShape["markDead"]>): Effect.Effect<number> {
    event.isBeingMarked = true
    return retriedMark(event.envelope.eventId, mark).pipe(
      Effect.catchCause((cause) =>
        Effect.as(logError(`outbox: marking ${event.envelope.eventId} failed: ${logText(cause)}`), 0)
      ),
      Effect.tap(() => Effect.sync(() => this.#finish(event)))
    )
  }

  makeWorker(): Worker {
    const current: Current = { event: undefined }
    const run = Effect.suspend(() =>
      Effect.whileLoop({
        while: () => !(this.#closing && this.queue.size("HOT") + this.queue.size("COLD") === 0),
        body: () => {
          const event = this.queue.take()
          if (event === undefined) return this.queue.awaitItem
          this.#recordDepths()
          return this.#handle(event, current)
        },
        step: () => {}
      })
    )
    const repair: Worker["repair"] = (cause) =>
      Effect.suspend(() => {
        const { event } = current
        current.event = undefined
        return event === undefined ? Effect.succeed("backOff") : Effect.as(this.#failed(event, cause), "restart")
      })
    return { run, repair }
  }
}

const isBoolean = (value: unknown): boolean => typeof value === "boolean"
