/** The state of a dispatcher and what it does with one event: queued, delivered, marked, settled. */
import { type Cause, type Clock, Duration, Effect, Random } from "effect"
import type { EventEnvelope } from "../../EventEnvelope.ts"
import type { EventRetryPolicy } from "../../EventRetryPolicy.ts"
import type { InFlightTracker } from "../../InFlightTracker.ts"
import type { MetricsExporter } from "../../MetricsExporter.ts"
import { ConditionVariable } from "../base/conditionVariable.ts"
import { type Fence, openFence, type StoreShape } from "../store/contract.ts"
import { decideFailure } from "./delivery.ts"
import { type DoneMarker, makeDoneMarker, retryBackoff } from "./doneMarker.ts"
import { type FairQueue, makeFairQueue } from "./fairQueue.ts"

/** The claims of this process: rows in flight are renewed at a third of `lockTimeout`. */
export interface ClaimLocking {
  /** Unique per running process, 1 to 128 characters. */
  readonly owner: string
  readonly lockTimeout: Duration.Input
}

export interface QueuedEvent {
  readonly envelope: EventEnvelope
  readonly source: "HOT" | "COLD"
  /** Failed deliveries before this one. */
  readonly attempts: number
  /** Where the row was read, if it was: see `PolledEvent`. */
  readonly place: string | undefined
}

/** An event in flight; `claimedAtNanos` moves with every renewal of its claim. */
interface InFlightEvent extends QueuedEvent {
  claimedAtNanos: bigint
}

export interface EngineSettings {
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
  /** Only where the user has one: what is held here is in flight anyway. */
  readonly tracker: InFlightTracker | undefined
  readonly deliver: (event: EventEnvelope) => Effect.Effect<unknown, unknown>
}

/** Rows of one renewing statement. */
const renewBatch = 500

export class DispatchEngine {
  readonly queue: FairQueue<InFlightEvent>
  readonly doneMarker: DoneMarker<InFlightEvent>
  readonly #parts: Parts
  readonly #settings: EngineSettings
  readonly #fence: Fence
  readonly #leaseNanos: bigint | undefined
  /** Everything queued or under way; undefined once it has settled, until the polls of that moment end: they may have read it. */
  readonly #held = new Map<string, InFlightEvent | undefined>()
  readonly #settledDuringPoll: Array<string> = []
  readonly #idleWaiters = new ConditionVariable()
  #polls = 0
  #closing = false

  constructor(parts: Parts, settings: EngineSettings) {
    this.#parts = parts
    this.#settings = settings
    const claim = settings.claimLocking
    this.#fence = claim === undefined ? openFence : { _tag: "Claim", owner: claim.owner }
    this.#leaseNanos =
      claim === undefined ? undefined : Duration.toNanosUnsafe(Duration.fromInputUnsafe(claim.lockTimeout))
    this.queue = makeFairQueue({ hot: settings.hotQueueCapacity, cold: settings.coldQueueCapacity })
    this.doneMarker = makeDoneMarker<InFlightEvent>({
      writers: 2,
      mark: (events) =>
        parts.store.markDone(
          events.map((e) => e.envelope.eventId),
          this.#fence,
          events.map((e) => e.place)
        ),
      onMarked: (event) => this.#settled(event)
    })
  }

  get inFlight(): number {
    return this.#held.size - this.#settledDuringPoll.length
  }

  get #unsettled(): ReadonlyArray<InFlightEvent> {
    return [...this.#held.values()].filter((event) => event !== undefined)
  }

  get closing(): boolean {
    return this.#closing
  }

  close(): void {
    this.#closing = true
    this.queue.close()
  }

  enqueue(envelope: EventEnvelope, source: "HOT" | "COLD", attempts: number, place?: string): boolean {
    const { metrics, clock, tracker } = this.#parts
    const id = envelope.eventId
    if (this.#closing) return false
    const known = this.#held.has(id)
    if (known && (tracker === undefined || this.#held.get(id) === undefined)) return true
    const capacity = source === "HOT" ? this.#settings.hotQueueCapacity : this.#settings.coldQueueCapacity
    if (this.queue.size(source) >= capacity) return known
    if (tracker !== undefined && !tracker.tryAcquire(id)) return true
    const claimedAtNanos = this.#leaseNanos === undefined ? 0n : clock.monotonicTimeNanosUnsafe()
    const event = { envelope, source, attempts, place, claimedAtNanos }
    this.#held.set(id, event)
    this.queue.offer(source, event)
    if (source === "HOT") metrics.incrementHotEnqueued()
    else metrics.incrementColdEnqueued()
    metrics.recordQueueDepths(this.queue.size("HOT"), this.queue.size("COLD"))
    if (source === "HOT" || this.#polls === 0) this.queue.wake()
    return true
  }

  #settled(event: InFlightEvent): void {
    const id = event.envelope.eventId
    this.#parts.tracker?.release(id)
    // A tracker may have let the same event in once more.
    if (this.#held.get(id) !== event) return
    if (this.#polls === 0) this.#held.delete(id)
    else {
      this.#held.set(id, undefined)
      this.#settledDuringPoll.push(id)
    }
    if (!this.#idleWaiters.isEmpty) this.#idleWaiters.notifyReady()
  }

  /** A claim that was not renewed in time may be somebody else's by now: its event is not started any more. */
  #leaseLost(event: InFlightEvent): boolean {
    return (
      this.#leaseNanos !== undefined &&
      this.#parts.clock.monotonicTimeNanosUnsafe() - event.claimedAtNanos >= this.#leaseNanos
    )
  }

  handle(event: InFlightEvent): Effect.Effect<void> {
    if (this.#leaseLost(event)) return Effect.sync(() => this.#settled(event))
    return Effect.matchCauseEffect(this.#parts.deliver(event.envelope), {
      onSuccess: () => {
        this.#parts.metrics.incrementDispatchSuccess()
        this.doneMarker.add(event)
        return this.doneMarker.awaitCapacity
      },
      onFailure: (cause) => this.#failed(event, cause)
    })
  }

  /** A postponed event keeps its worker: while the destination is down, nothing else would get through either. */
  #failed(event: InFlightEvent, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    return Effect.flatMap(Random.next, (random) => {
      const outcome = decideFailure(cause, event.attempts, this.#settings, random)
      const { eventId, eventType } = event.envelope
      switch (outcome._tag) {
        case "Postpone":
          return Effect.logWarning(`outbox: ${eventType} ${eventId} waits: ${outcome.error}`).pipe(
            Effect.andThen(Effect.sleep(outcome.delayMillis)),
            Effect.andThen(Effect.suspend(() => this.handle(event)))
          )
        case "Dead": {
          const after = `${event.attempts + 1} deliveries: ${outcome.error}`
          return Effect.logError(`outbox: ${eventType} ${eventId} is DEAD after ${after}`).pipe(
            Effect.andThen(this.#mark(event, this.#parts.store.markDead(eventId, outcome.error, this.#fence))),
            Effect.tap(() => Effect.sync(this.#parts.metrics.incrementDispatchDead))
          )
        }
        case "Retry": {
          const mark = this.#parts.store.markRetry(
            eventId,
            outcome.delayMillis,
            outcome.error,
            this.#fence,
            event.attempts
          )
          return Effect.tap(this.#mark(event, mark), () =>
            Effect.sync(() => {
              this.#parts.metrics.incrementDispatchFailure()
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
      Effect.andThen(Effect.sync(() => this.#settled(event)))
    )
  }

  readonly worker: Effect.Effect<void> = Effect.suspend(() =>
    Effect.whileLoop({
      while: () => !(this.#closing && this.queue.size("HOT") + this.queue.size("COLD") === 0),
      body: () => {
        const event = this.queue.take()
        return event === undefined ? this.queue.awaitItem : this.handle(event)
      },
      step: () => {}
    })
  )

  /** Renews the claims of everything in flight. What could not be renewed runs out by itself. */
  renewClaims(claim: ClaimLocking): Effect.Effect<void> {
    return Effect.suspend(() => {
      const now = this.#parts.clock.monotonicTimeNanosUnsafe()
      const events = this.#unsettled
      const chunks = Array.from({ length: Math.ceil(events.length / renewBatch) }, (_, i) =>
        events.slice(i * renewBatch, (i + 1) * renewBatch)
      )
      const renew = (chunk: ReadonlyArray<InFlightEvent>) => {
        const ids = chunk.map((e) => e.envelope.eventId)
        return Effect.map(this.#parts.store.renewClaims(claim.owner, ids), (renewed) => {
          const ours = new Set(renewed)
          for (const event of chunk) if (ours.has(event.envelope.eventId)) event.claimedAtNanos = now
        })
      }
      return Effect.forEach(chunks, renew, { discard: true })
    }).pipe(Effect.catchCause((cause) => Effect.logError("outbox: renewing claims failed", cause)))
  }

  /** At the very end: what is unfinished stays pending, and others may take it at once. */
  readonly releaseRest: Effect.Effect<void> = Effect.suspend(() => {
    const left = this.#unsettled.map((event) => event.envelope.eventId)
    const claim = this.#settings.claimLocking
    if (left.length === 0) return Effect.void
    const log = Effect.logWarning(`outbox: closed with ${left.length} events unfinished; they stay pending`)
    return claim === undefined
      ? log
      : Effect.andThen(log, Effect.ignore(this.#parts.store.releaseClaims(claim.owner, left)))
  })

  whilePolling<A, E, R>(poll: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const begin = Effect.sync(() => {
      this.#polls++
    })
    const end = Effect.sync(() => {
      this.#polls--
      if (this.#polls === 0) for (const id of this.#settledDuringPoll.splice(0)) this.#held.delete(id)
      this.queue.wake()
    })
    return Effect.acquireUseRelease(
      begin,
      () => poll,
      () => end
    )
  }

  readonly awaitIdle: Effect.Effect<void> = this.#idleWaiters.await(() => this.inFlight === 0)
}
