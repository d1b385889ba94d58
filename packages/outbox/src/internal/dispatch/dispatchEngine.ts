/** The way of one event through a dispatcher: queued, delivered, marked. */
import { type Cause, type Clock, Duration, Effect, Random } from "effect"
import type { EventRetryPolicy } from "../../EventRetryPolicy.ts"
import type { InFlightTracker } from "../../InFlightTracker.ts"
import type { MetricsExporter } from "../../MetricsExporter.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import type { CallListener } from "../delivery/callListener.ts"
import { type DoneMarker, makeDoneMarker, retryBackoff } from "../delivery/doneMarker.ts"
import { decideFailure } from "../delivery/failureOutcome.ts"
import { type Fence, openFence, type StoreShape } from "../store/contract.ts"
import { type FairQueue, makeFairQueue, type Source } from "./fairQueue.ts"
import { type ClaimLocking, type InFlightEvent, InFlightEvents } from "./inFlightEvents.ts"

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
  readonly metrics: MetricsExporter
  readonly clock: Clock.Clock
  /** The user's own tracker, if there is one. Without it, `InFlightEvents` decides alone. */
  readonly tracker: InFlightTracker | undefined
  readonly callListener: CallListener
}

/** The most rows of one renewing statement. */
const renewBatch = 500

export class DispatchEngine {
  readonly queue: FairQueue<InFlightEvent>
  readonly doneMarker: DoneMarker<InFlightEvent>
  readonly inFlight = new InFlightEvents()
  readonly #parts: Parts
  readonly #settings: EngineSettings
  readonly #fence: Fence
  readonly #lockNanos: bigint | undefined
  #closing = false

  constructor(parts: Parts, settings: EngineSettings) {
    this.#parts = parts
    this.#settings = settings
    const claim = settings.claimLocking
    this.#fence = claim === undefined ? openFence : { _tag: "Claim", owner: claim.owner }
    this.#lockNanos =
      claim === undefined ? undefined : Duration.toNanosUnsafe(Duration.fromInputUnsafe(claim.lockTimeout))
    this.queue = makeFairQueue({ hot: settings.hotQueueCapacity, cold: settings.coldQueueCapacity })
    this.doneMarker = makeDoneMarker<InFlightEvent>({
      writers: 2,
      mark: (events) =>
        parts.store.markDone(
          events.map((e) => e.envelope.eventId),
          this.#fence,
          events.map((e) => e.rowAddress)
        ),
      onMarked: (event) => this.#finish(event)
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
    const { metrics, clock, tracker } = this.#parts
    const id = envelope.eventId
    if (this.#closing) return false
    const state = this.inFlight.stateOf(id)
    if (state === "finished" || (state === "inFlight" && tracker === undefined)) return true
    const capacity = source === "HOT" ? this.#settings.hotQueueCapacity : this.#settings.coldQueueCapacity
    if (this.queue.size(source) >= capacity) return state === "inFlight"
    if (tracker !== undefined && !tracker.tryAcquire(id)) return true
    const claimedAtNanos = this.#lockNanos === undefined ? 0n : clock.monotonicTimeNanosUnsafe()
    const event = { envelope, source, attempts, rowAddress, claimedAtNanos }
    this.inFlight.add(event)
    this.queue.offer(source, event)
    if (source === "HOT") metrics.incrementHotEnqueued()
    else metrics.incrementColdEnqueued()
    metrics.recordQueueDepths(this.queue.size("HOT"), this.queue.size("COLD"))
    if (source === "HOT" || !this.inFlight.isPolling) this.queue.wake()
    return true
  }

  #finish(event: InFlightEvent): void {
    this.#parts.tracker?.release(event.envelope.eventId)
    this.inFlight.finish(event)
  }

  /** Another process may hold a claim that was not renewed in time. Such an event is not started. */
  #claimExpired(event: InFlightEvent): boolean {
    return (
      this.#lockNanos !== undefined &&
      this.#parts.clock.monotonicTimeNanosUnsafe() - event.claimedAtNanos >= this.#lockNanos
    )
  }

  #handle(event: InFlightEvent): Effect.Effect<void> {
    if (this.#claimExpired(event)) return Effect.sync(() => this.#finish(event))
    return Effect.matchCauseEffect(this.#parts.callListener(event.envelope), {
      onSuccess: () => {
        this.#parts.metrics.incrementDispatchSuccess()
        this.doneMarker.add(event)
        return this.doneMarker.awaitCapacity
      },
      onFailure: (cause) => this.#failed(event, cause)
    })
  }

  /** A postponed event keeps its worker until its destination is available again. */
  #failed(event: InFlightEvent, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    const { metrics, store } = this.#parts
    return Effect.flatMap(Random.next, (random) => {
      const outcome = decideFailure(cause, event.attempts, this.#settings, random)
      const { eventId, eventType } = event.envelope
      switch (outcome._tag) {
        case "Postpone":
          return Effect.logWarning(`outbox: ${eventType} ${eventId} waits: ${outcome.error}`).pipe(
            Effect.andThen(Effect.sleep(outcome.delayMillis)),
            Effect.andThen(Effect.suspend(() => this.#handle(event)))
          )
        case "Dead": {
          const after = `${event.attempts + 1} deliveries: ${outcome.error}`
          return Effect.logError(`outbox: ${eventType} ${eventId} is DEAD after ${after}`).pipe(
            Effect.andThen(this.#mark(event, store.markDead(eventId, outcome.error, this.#fence))),
            Effect.tap(() => Effect.sync(metrics.incrementDispatchDead))
          )
        }
        case "Retry": {
          const mark = store.markRetry(eventId, outcome.delayMillis, outcome.error, this.#fence, event.attempts)
          return Effect.tap(this.#mark(event, mark), () =>
            Effect.sync(() => {
              metrics.incrementDispatchFailure()
              this.#settings.onRetryScheduled?.()
            })
          )
        }
      }
    })
  }

  #mark(event: InFlightEvent, mark: ReturnType<StoreShape["markDead"]>): Effect.Effect<void> {
    return Effect.retry(mark, retryBackoff).pipe(
      Effect.catchCause((cause) => Effect.logError(`outbox: marking ${event.envelope.eventId} failed`, cause)),
      Effect.andThen(Effect.sync(() => this.#finish(event)))
    )
  }

  /** Handles one event after the other until the engine closes and the queues are empty. */
  readonly worker: Effect.Effect<void> = Effect.suspend(() =>
    Effect.whileLoop({
      while: () => !(this.#closing && this.queue.size("HOT") + this.queue.size("COLD") === 0),
      body: () => {
        const event = this.queue.take()
        return event === undefined ? this.queue.awaitItem : this.#handle(event)
      },
      step: () => {}
    })
  )

  /** Renews the claims of all events in flight. A claim that could not be renewed expires by itself. */
  renewClaims(claim: ClaimLocking): Effect.Effect<void> {
    return Effect.suspend(() => {
      const now = this.#parts.clock.monotonicTimeNanosUnsafe()
      const events = this.inFlight.unfinished
      const chunks = Array.from({ length: Math.ceil(events.length / renewBatch) }, (_, i) =>
        events.slice(i * renewBatch, (i + 1) * renewBatch)
      )
      const renew = (chunk: ReadonlyArray<InFlightEvent>) => {
        const ids = chunk.map((e) => e.envelope.eventId)
        return Effect.map(this.#parts.store.renewClaims(claim.owner, ids), (renewed) => {
          const stillOurs = new Set(renewed)
          for (const event of chunk) if (stillOurs.has(event.envelope.eventId)) event.claimedAtNanos = now
        })
      }
      return Effect.forEach(chunks, renew, { discard: true })
    }).pipe(Effect.catchCause((cause) => Effect.logError("outbox: renewing claims failed", cause)))
  }

  /** Releases the claims of unfinished events at the very end. They stay pending, and another process may take them at once. */
  readonly releaseUnfinished: Effect.Effect<void> = Effect.suspend(() => {
    const left = this.inFlight.unfinished.map((event) => event.envelope.eventId)
    const claim = this.#settings.claimLocking
    if (left.length === 0) return Effect.void
    const log = Effect.logWarning(`outbox: closed with ${left.length} events unfinished; they stay pending`)
    return claim === undefined
      ? log
      : Effect.andThen(log, Effect.ignore(this.#parts.store.releaseClaims(claim.owner, left)))
  })
}
