/** The way of one event through a dispatcher: queued, delivered, marked. */
import { type Cause, Duration, Effect, Random } from "effect"
import type { EventRetryPolicy } from "../../EventRetryPolicy.ts"
import type { InFlightTracker } from "../../InFlightTracker.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import { logText } from "../base/failureText.ts"
import { type CallListener, listenerKeyOf } from "../delivery/callListener.ts"
import type { DeliveryTools } from "../delivery/deliveryTools.ts"
import { type DoneMarker, makeDoneMarker, retryBackoff } from "../delivery/doneMarker.ts"
import { decideFailure, reportFailure } from "../delivery/failureOutcome.ts"
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
    const { tools, tracker } = this.#parts
    const { clock, guard, metrics } = tools
    const id = envelope.eventId
    if (this.#closing) return false
    const state = this.inFlight.stateOf(id, attempts)
    if (state === "finished" || (state === "inFlight" && tracker === undefined)) return true
    const capacity = source === "HOT" ? this.#settings.hotQueueCapacity : this.#settings.coldQueueCapacity
    if (this.queue.size(source) >= capacity) return state === "inFlight"
    if (
      tracker !== undefined &&
      !guard.call("inFlightTracker.tryAcquire", () => tracker.tryAcquire(id), isBoolean, true)
    ) {
      return true
    }
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
    const { tools, tracker } = this.#parts
    if (tracker !== undefined) {
      tools.guard.run("inFlightTracker.release", () => tracker.release(event.envelope.eventId))
    }
    this.inFlight.finish(event)
  }

  /** Another process may hold a claim that was not renewed in time. Such an event is not started. */
  #claimExpired(event: InFlightEvent): boolean {
    return (
      this.#lockNanos !== undefined &&
      this.#parts.tools.clock.monotonicTimeNanosUnsafe() - event.claimedAtNanos >= this.#lockNanos
    )
  }

  #handle(event: InFlightEvent, current: Current): Effect.Effect<void> {
    if (this.#claimExpired(event)) return Effect.sync(() => this.#finish(event))
    const { guard, metrics } = this.#parts.tools
    current.event = event
    return Effect.matchCauseEffect(this.#parts.callListener(event.envelope), {
      onSuccess: () => {
        current.event = undefined
        if (guard.monitor.has("listener")) guard.monitor.clear("listener", listenerKeyOf(event.envelope))
        metrics.incrementDispatchSuccess()
        this.doneMarker.add(event)
        return this.doneMarker.awaitCapacity
      },
      onFailure: (cause) => {
        current.event = undefined
        return this.#failed(event, cause, current)
      }
    })
  }

  /** A postponed event keeps its worker until its destination is available again. */
  #failed(event: InFlightEvent, cause: Cause.Cause<unknown>, current: Current): Effect.Effect<void> {
    const { store, tools } = this.#parts
    const { clock, guard, metrics } = tools
    return Effect.flatMap(Random.next, (random) => {
      const { envelope, attempts } = event
      const outcome = decideFailure(cause, attempts, this.#settings, random, guard)
      const nowMillis = clock.currentTimeMillisUnsafe()
      const reported = reportFailure(envelope, cause, attempts, outcome, this.#settings, guard, nowMillis)
      switch (outcome._tag) {
        case "Postpone":
          return reported.pipe(
            Effect.andThen(Effect.sleep(outcome.delayMillis)),
            Effect.andThen(Effect.suspend(() => this.#handle(event, current)))
          )
        case "Dead":
          return reported.pipe(
            Effect.andThen(this.#mark(event, store.markDead(envelope.eventId, outcome.error, this.#fence))),
            Effect.andThen(Effect.sync(metrics.incrementDispatchDead))
          )
        case "Retry": {
          const { delayMillis, error } = outcome
          return reported.pipe(
            Effect.andThen(
              this.#mark(event, store.markRetry(envelope.eventId, delayMillis, error, this.#fence, attempts))
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

  #mark(event: InFlightEvent, mark: ReturnType<StoreShape["markDead"]>): Effect.Effect<void> {
    return Effect.retry(mark, retryBackoff).pipe(
      Effect.catchCause((cause) =>
        Effect.logError(`outbox: marking ${event.envelope.eventId} failed: ${logText(cause)}`)
      ),
      Effect.andThen(Effect.sync(() => this.#finish(event)))
    )
  }

  makeWorker(): Worker {
    const current: Current = { event: undefined }
    const run = Effect.suspend(() =>
      Effect.whileLoop({
        while: () => !(this.#closing && this.queue.size("HOT") + this.queue.size("COLD") === 0),
        body: () => {
          const event = this.queue.take()
          return event === undefined ? this.queue.awaitItem : this.#handle(event, current)
        },
        step: () => {}
      })
    )
    const repair: Worker["repair"] = (cause) =>
      Effect.suspend(() => {
        const { event } = current
        current.event = undefined
        return event === undefined
          ? Effect.succeed("backOff")
          : Effect.as(this.#failed(event, cause, current), "restart")
      })
    return { run, repair }
  }

  /** Renews the claims of all events in flight. A claim that could not be renewed expires by itself. */
  renewClaims(claim: ClaimLocking): Effect.Effect<void> {
    return Effect.suspend(() => {
      const now = this.#parts.tools.clock.monotonicTimeNanosUnsafe()
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
    }).pipe(Effect.catchCause((cause) => Effect.logError(`outbox: renewing claims failed: ${logText(cause)}`)))
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

const isBoolean = (value: unknown): boolean => typeof value === "boolean"
