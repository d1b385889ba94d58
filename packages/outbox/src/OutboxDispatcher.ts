/**
 * Delivers events to their listeners: a hot queue fed after commit, a cold queue fed by the poller, workers that take 2 hot : 1 cold
 * and run one event at a time each, and marks DONE, RETRY or DEAD.
 *
 * Owns the two queues and the events in flight. A slow database or listener fills the queues, then `enqueue` returns false and
 * events wait in the table: memory stays bounded and nothing is lost.
 */
import { Clock, Context, Duration, Effect, Fiber, Layer, Scope } from "effect"
import type { EventEnvelope } from "./EventEnvelope.ts"
import type { EventInterceptor } from "./EventInterceptor.ts"
import { defaultPolicy, type EventRetryPolicy } from "./EventRetryPolicy.ts"
import type { InFlightTracker } from "./InFlightTracker.ts"
import { checkOptions, positive, whole } from "./internal/base/options.ts"
import { makeDelivery } from "./internal/dispatch/delivery.ts"
import { type ClaimLocking, DispatchEngine } from "./internal/dispatch/dispatchEngine.ts"
import { ListenerRegistry } from "./ListenerRegistry.ts"
import * as MetricsExporter from "./MetricsExporter.ts"
import type { InvalidOutboxConfig } from "./OutboxError.ts"
import { OutboxStore } from "./OutboxStore.ts"

export type { ClaimLocking, QueuedEvent } from "./internal/dispatch/dispatchEngine.ts"

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
  readonly retryPolicy?: EventRetryPolicy
  readonly interceptors?: ReadonlyArray<EventInterceptor>
  /** How long closing waits for queued events before it interrupts. Default 5 seconds. */
  readonly drainTimeout?: Duration.Input
  /** A listener that runs longer has failed. Default: none; a listener that hangs then keeps its worker. */
  readonly listenerTimeout?: Duration.Input
  /** Default: an event is in flight from its queue to its mark. */
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
    /** `place` is that of the `PolledEvent`, where there is one. */
    readonly enqueueCold: (event: EventEnvelope, attempts: number, place?: string) => boolean
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

const defaults = {
  maxAttempts: 10,
  workerCount: 4,
  hotQueueCapacity: 1000,
  coldQueueCapacity: 1000,
  drainTimeout: "5 seconds" as Duration.Input
}

const check = (settings: DispatcherOptions & typeof defaults) =>
  checkOptions("OutboxDispatcher", [
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

/** Starts the workers; closing the scope drains for `drainTimeout`, then interrupts. What was not finished stays pending. */
export const make: (
  options?: DispatcherOptions
) => Effect.Effect<Shape, InvalidOutboxConfig, OutboxStore | ListenerRegistry | Scope.Scope> = Effect.fnUntraced(
  function* (options = {}) {
    const settings = { ...defaults, retryPolicy: defaultPolicy, ...options }
    yield* check(settings)
    const clock = yield* Clock.Clock
    const deliver = makeDelivery({
      registry: yield* ListenerRegistry,
      interceptors: settings.interceptors ?? [],
      listenerTimeout: settings.listenerTimeout
    })
    const metrics = yield* MetricsExporter.Current
    const engine = new DispatchEngine(
      { store: yield* OutboxStore, metrics, clock, tracker: settings.inFlightTracker, deliver },
      settings
    )

    const scope = yield* Scope.fork(yield* Effect.scope)
    yield* Effect.forkIn(engine.doneMarker.run, scope)
    const workers = yield* Effect.forEach(Array.from({ length: settings.workerCount }), () =>
      Effect.forkIn(engine.worker, scope)
    )
    const claim = settings.claimLocking
    if (claim !== undefined) {
      const third = Duration.toMillis(Duration.fromInputUnsafe(claim.lockTimeout)) / 3
      yield* Effect.forkIn(Effect.forever(Effect.andThen(Effect.sleep(third), engine.renewClaims(claim))), scope)
    }
    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        engine.close()
        const drained = Effect.andThen(Fiber.awaitAll(workers), engine.doneMarker.flush)
        yield* Effect.timeoutOption(Effect.interruptible(drained), settings.drainTimeout)
        yield* Fiber.interruptAll(workers)
        // Listeners that have finished are marked even when others had to be cut off.
        yield* Effect.timeoutOption(Effect.interruptible(engine.doneMarker.flush), "1 second")
        yield* engine.releaseRest
      })
    )
    return OutboxDispatcher.of({
      enqueueHot: (event) => engine.enqueue(event, "HOT", 0),
      enqueueCold: (event, attempts, place) => engine.enqueue(event, "COLD", attempts, place),
      coldQueueRemainingCapacity: () => (engine.closing ? 0 : settings.coldQueueCapacity - engine.queue.size("COLD")),
      awaitColdCapacity: Effect.suspend(() => (engine.closing ? Effect.never : engine.queue.awaitColdCapacity)),
      whilePolling: (poll) => engine.whilePolling(poll),
      inFlight: () => engine.inFlight,
      awaitIdle: engine.awaitIdle
    })
  }
)

export const layer = (
  options?: DispatcherOptions
): Layer.Layer<OutboxDispatcher, InvalidOutboxConfig, OutboxStore | ListenerRegistry> =>
  Layer.effect(OutboxDispatcher, make(options))
