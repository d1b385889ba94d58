/**
 * Delivers events to their listeners: a hot queue fed after commit, a cold queue fed by the poller, workers that take 2 hot : 1 cold
 * and run one event at a time each, and marks DONE, RETRY or DEAD.
 *
 * Owns the two queues and the events in flight. A slow database or listener fills the queues, then `enqueue` returns false and
 * events wait in the table: memory stays bounded and nothing is lost.
 */
import { type Cause, Clock, Context, Duration, Effect, Fiber, Layer, Random, Scope } from "effect"
import type { EventEnvelope } from "./EventEnvelope.ts"
import type { EventInterceptor } from "./EventInterceptor.ts"
import { type InFlightTracker, make as makeInFlightTracker } from "./InFlightTracker.ts"
import { decideFailure, makeDelivery } from "./internal/delivery.ts"
import { makeFairQueue } from "./internal/fairQueue.ts"
import { makeFinisher, patience } from "./internal/finisher.ts"
import { checkOptions, positive, whole } from "./internal/options.ts"
import { ListenerRegistry } from "./ListenerRegistry.ts"
import * as MetricsExporter from "./MetricsExporter.ts"
import type { InvalidOutboxConfig } from "./OutboxError.ts"
import { type Fence, OutboxStore, openFence } from "./OutboxStore.ts"
import { defaultPolicy, type RetryPolicy } from "./RetryPolicy.ts"

export interface QueuedEvent {
  readonly envelope: EventEnvelope
  readonly source: "HOT" | "COLD"
  /** Failed deliveries before this one. */
  readonly attempts: number
}

/** The claims of this process: rows in flight are renewed at a third of `lockTimeout`. */
export interface ClaimLocking {
  /** Unique per running process, 1 to 128 characters. */
  readonly owner: string
  readonly lockTimeout: Duration.Input
}

export interface DispatcherOptions {
  /** Deliveries in all before DEAD. Default 10; 1 or more. */
  readonly maxAttempts?: number
  /** Listeners that run at once. Default 4. */
  readonly workerCount?: number
  /** Default 1000. */
  readonly hotQueueCapacity?: number
  /** Default 1000. */
  readonly coldQueueCapacity?: number
  /** Default exponential from 200 ms to a minute. */
  readonly retryPolicy?: RetryPolicy
  readonly interceptors?: ReadonlyArray<EventInterceptor>
  /** How long closing waits for queued events before it interrupts. Default 5 seconds. */
  readonly drainTimeout?: Duration.Input
  /** A listener that runs longer has failed. Default: none; a listener that hangs then keeps its worker. */
  readonly listenerTimeout?: Duration.Input
  readonly inFlightTracker?: InFlightTracker
  /** Marks are fenced by this claim. Default: no claims (single node). */
  readonly claimLocking?: ClaimLocking
  /** Called after an event was marked RETRY: the poller looks for its due time. */
  readonly onRetryScheduled?: () => void
}

export class OutboxDispatcher extends Context.Service<
  OutboxDispatcher,
  {
    /** False when the queue is full or closing. An event that is in flight already is dropped, and that counts as taken. */
    readonly enqueueHot: (event: EventEnvelope) => boolean
    readonly enqueueCold: (event: EventEnvelope, attempts: number) => boolean
    readonly coldQueueRemainingCapacity: () => number
    /** Waits until the cold queue is at most half full. */
    readonly awaitColdCapacity: Effect.Effect<void>
    /** Runs a read of pending rows. What finishes meanwhile may still be in its result, and is not taken a second time. */
    readonly whilePolling: <A, E, R>(poll: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** Events queued or being handled. */
    readonly inFlight: () => number
    /** Waits until nothing is queued or being handled. */
    readonly awaitIdle: Effect.Effect<void>
  }
>()("@eventbus/outbox/OutboxDispatcher") {}

export type Shape = OutboxDispatcher["Service"]

/** An event in flight; `claimedAtNanos` moves with every renewal of its claim. */
interface Held extends QueuedEvent {
  claimedAtNanos: bigint
}

const renewBatch = 500

const defaults = {
  maxAttempts: 10,
  workerCount: 4,
  hotQueueCapacity: 1000,
  coldQueueCapacity: 1000,
  drainTimeout: "5 seconds" as Duration.Input
}

/** Starts the workers; closing the scope drains for `drainTimeout`, then interrupts. What was not finished stays pending. */
export const make: (
  options?: DispatcherOptions
) => Effect.Effect<Shape, InvalidOutboxConfig, OutboxStore | ListenerRegistry | Scope.Scope> = Effect.fnUntraced(
  function* (options = {}) {
    const settings = { ...defaults, retryPolicy: defaultPolicy, ...options }
    yield* checkOptions("OutboxDispatcher", [
      whole("maxAttempts", settings.maxAttempts, 1, 1_000_000),
      whole("workerCount", settings.workerCount, 1, 10_000),
      whole("hotQueueCapacity", settings.hotQueueCapacity, 1, 1_000_000),
      whole("coldQueueCapacity", settings.coldQueueCapacity, 1, 1_000_000),
      positive("drainTimeout", settings.drainTimeout),
      ...(settings.listenerTimeout === undefined ? [] : [positive("listenerTimeout", settings.listenerTimeout)]),
      ...(settings.claimLocking === undefined
        ? []
        : [positive("claimLocking.lockTimeout", settings.claimLocking.lockTimeout)])
    ])
    const store = yield* OutboxStore
    const registry = yield* ListenerRegistry
    const metrics = yield* MetricsExporter.Current
    const clock = yield* Clock.Clock
    const tracker = settings.inFlightTracker ?? makeInFlightTracker({ clock })
    const claim = settings.claimLocking
    const fence: Fence = claim === undefined ? openFence : { _tag: "Claim", owner: claim.owner }
    const queue = makeFairQueue<Held>({ hot: settings.hotQueueCapacity, cold: settings.coldQueueCapacity })
    const held = new Map<string, Held>()
    const deliver = makeDelivery({
      registry,
      interceptors: settings.interceptors ?? [],
      listenerTimeout: settings.listenerTimeout
    })
    let closing = false
    let polls = 0
    const finishedDuringPoll = new Set<string>()
    const idleWaiters: Array<() => void> = []

    const settled = (event: Held): void => {
      const id = event.envelope.eventId
      if (polls > 0) finishedDuringPoll.add(id)
      held.delete(id)
      tracker.release(id)
      if (held.size > 0) return
      for (const resume of idleWaiters.splice(0)) resume()
    }

    const enqueue = (envelope: EventEnvelope, source: "HOT" | "COLD", attempts: number): boolean => {
      const id = envelope.eventId
      if (closing) return false
      if (finishedDuringPoll.has(id)) return true
      const capacity = source === "HOT" ? settings.hotQueueCapacity : settings.coldQueueCapacity
      if (queue.size(source) >= capacity) return held.has(id)
      if (!tracker.tryAcquire(id)) return true
      const event = { envelope, source, attempts, claimedAtNanos: clock.monotonicTimeNanosUnsafe() }
      held.set(id, event)
      queue.offer(source, event)
      if (source === "HOT") metrics.incrementHotEnqueued()
      else metrics.incrementColdEnqueued()
      metrics.recordQueueDepths(queue.size("HOT"), queue.size("COLD"))
      return true
    }

    const finisher = yield* makeFinisher<Held>({
      mark: (events) =>
        store.markDone(
          events.map((e) => e.envelope.eventId),
          fence
        ),
      settled
    })

    /** A postponed event keeps its worker: while the destination is down, nothing else would get through either. */
    const markFailed = (event: Held, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
      Effect.gen(function* () {
        const outcome = decideFailure(cause, event.attempts, settings, yield* Random.next)
        const { eventId, eventType } = event.envelope
        if (outcome._tag === "Postpone") {
          yield* Effect.logWarning(`outbox: ${eventType} ${eventId} waits: ${outcome.error}`)
          return yield* Effect.andThen(Effect.sleep(outcome.delayMillis), handle(event))
        }
        if (outcome._tag === "Dead") {
          yield* Effect.logError(
            `outbox: ${eventType} ${eventId} is DEAD after ${event.attempts + 1} deliveries: ${outcome.error}`
          )
        }
        const mark =
          outcome._tag === "Dead"
            ? store.markDead(eventId, outcome.error, fence)
            : store.markRetry(eventId, outcome.delayMillis, outcome.error, fence)
        yield* Effect.retry(mark, patience).pipe(
          Effect.catchCause((failure) =>
            Effect.logError(`outbox: marking ${eventId} as ${outcome._tag} failed`, failure)
          )
        )
        settled(event)
        if (outcome._tag === "Dead") metrics.incrementDispatchDead()
        else {
          metrics.incrementDispatchFailure()
          settings.onRetryScheduled?.()
        }
      })

    /** A claim that was not renewed in time may be somebody else's by now: its event is not started any more. */
    const leaseNanos =
      claim === undefined ? undefined : Duration.toNanosUnsafe(Duration.fromInputUnsafe(claim.lockTimeout))
    const leaseLost = (event: Held): boolean =>
      leaseNanos !== undefined && clock.monotonicTimeNanosUnsafe() - event.claimedAtNanos >= leaseNanos

    const handle = (event: Held): Effect.Effect<void> => {
      if (leaseLost(event)) return Effect.sync(() => settled(event))
      return Effect.matchCauseEffect(deliver(event.envelope), {
        onSuccess: () => {
          metrics.incrementDispatchSuccess()
          finisher.add(event)
          return finisher.awaitRoom
        },
        onFailure: (cause) => markFailed(event, cause)
      })
    }

    const worker = Effect.whileLoop({
      while: () => !(closing && queue.size("HOT") + queue.size("COLD") === 0),
      body: () => {
        const event = queue.take()
        return event === undefined ? queue.awaitItem : handle(event)
      },
      step: () => {}
    })

    const renew = Effect.suspend(() => {
      const now = clock.monotonicTimeNanosUnsafe()
      const events = [...held.values()]
      const chunks = Array.from({ length: Math.ceil(events.length / renewBatch) }, (_, i) =>
        events.slice(i * renewBatch, (i + 1) * renewBatch)
      )
      return Effect.forEach(
        chunks,
        (chunk) =>
          Effect.map(
            store.renewClaims(
              claim!.owner,
              chunk.map((e) => e.envelope.eventId)
            ),
            (renewed) => {
              const ids = new Set(renewed)
              for (const event of chunk) if (ids.has(event.envelope.eventId)) event.claimedAtNanos = now
            }
          ),
        { discard: true }
      ).pipe(Effect.catchCause((cause) => Effect.logError("outbox: renewing claims failed", cause)))
    })

    const workersScope = yield* Scope.fork(yield* Effect.scope)
    const workers = yield* Effect.forEach(Array.from({ length: settings.workerCount }), () =>
      Effect.forkIn(worker, workersScope)
    )
    if (claim !== undefined) {
      const third = Duration.toMillis(Duration.fromInputUnsafe(claim.lockTimeout)) / 3
      yield* Effect.forkIn(Effect.forever(Effect.andThen(Effect.sleep(third), renew)), workersScope)
    }

    const releaseRest = Effect.suspend(() => {
      const left = [...held.keys()]
      if (left.length === 0) return Effect.void
      const log = Effect.logWarning(`outbox: closed with ${left.length} events unfinished; they stay pending`)
      return claim === undefined ? log : Effect.andThen(log, Effect.ignore(store.releaseClaims(claim.owner, left)))
    })
    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        closing = true
        queue.wakeAll()
        const drained = Effect.andThen(Fiber.awaitAll(workers), finisher.flush)
        yield* Effect.timeoutOption(Effect.interruptible(drained), settings.drainTimeout)
        yield* Fiber.interruptAll(workers)
        // Listeners that have finished are marked even when others had to be cut off.
        yield* Effect.timeoutOption(Effect.interruptible(finisher.flush), "1 second")
        yield* releaseRest
      })
    )

    return OutboxDispatcher.of({
      enqueueHot: (event) => enqueue(event, "HOT", 0),
      enqueueCold: (event, attempts) => enqueue(event, "COLD", attempts),
      coldQueueRemainingCapacity: () => (closing ? 0 : settings.coldQueueCapacity - queue.size("COLD")),
      awaitColdCapacity: Effect.suspend(() => (closing ? Effect.never : queue.awaitColdRoom)),
      whilePolling: (poll) =>
        Effect.acquireUseRelease(
          Effect.sync(() => void polls++),
          () => poll,
          () =>
            Effect.sync(() => {
              polls--
              if (polls === 0) finishedDuringPoll.clear()
            })
        ),
      inFlight: () => held.size,
      awaitIdle: Effect.suspend(() =>
        held.size === 0
          ? Effect.void
          : Effect.callback<void>((resume) => void idleWaiters.push(() => resume(Effect.void)))
      )
    })
  }
)

export const layer = (
  options?: DispatcherOptions
): Layer.Layer<OutboxDispatcher, InvalidOutboxConfig, OutboxStore | ListenerRegistry> =>
  Layer.effect(OutboxDispatcher, make(options))
