/**
 * Delivers events to their listeners (outbox seed §9). The hot path fills one queue after commit, the poller fills the other. Workers take two
 * hot events for one cold event, handle one event at a time each, and mark it DONE, RETRY or DEAD.
 *
 * The dispatcher owns the two queues and the events in flight. When the database or a listener is slow, the queues fill, `enqueueHot`
 * and `enqueueCold` return false, and events wait in the table. So memory stays bounded and nothing is lost.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { EventEnvelope } from "./EventEnvelope.ts"
import type { EventInterceptor } from "./EventInterceptor.ts"
import { type EventRetryPolicy, exponential } from "./EventRetryPolicy.ts"
import type { InFlightTracker } from "./InFlightTracker.ts"
import { dispatcher as kinds } from "./internal/base/optionKinds.ts"
import { checkOptions, problemsOf, withDefaults } from "./internal/base/options.ts"
import { makeCallListener } from "./internal/delivery/callListener.ts"
import { makeDeliveryTools } from "./internal/delivery/deliveryTools.ts"
import { releaseUnfinished, renewClaims } from "./internal/dispatch/claimRenewal.ts"
import { DispatchEngine } from "./internal/dispatch/dispatchEngine.ts"
import type { ClaimLocking } from "./internal/dispatch/inFlightEvents.ts"
import { ListenerRegistry } from "./ListenerRegistry.ts"
import type { InvalidOutboxConfig } from "./OutboxError.ts"
import { OutboxStore } from "./OutboxStore.ts"

export type { ClaimLocking } from "./internal/dispatch/inFlightEvents.ts"

/** Settings of a dispatcher (outbox seed §14). */
export interface DispatcherOptions {
  /** Deliveries of one event in all before it is DEAD, 1 to 1,000,000. Default 10. */
  readonly maxAttempts?: number
  /** Listeners that run at once, 1 to 10,000. Default 4. */
  readonly workerCount?: number
  /** The most events in the hot queue, 1 to 1,000,000. Default 1000. */
  readonly hotQueueCapacity?: number
  /** The most events in the cold queue, 1 to 1,000,000. Default 1000. */
  readonly coldQueueCapacity?: number
  /** The wait after a failed delivery. Default: exponential from 200 ms to a minute. */
  readonly retryPolicy?: EventRetryPolicy
  /** Work around every delivery, in this order. Default: none. */
  readonly interceptors?: ReadonlyArray<EventInterceptor>
  /** How long closing waits for queued events before it interrupts workers. Above 0. Default 5 seconds. */
  readonly drainTimeout?: Duration.Input
  /**
   * The longest time of a listener, and of each `beforeDispatch` and `afterDispatch`. Above 0. One that runs longer is interrupted and has failed. One that resists its
   * interruption for a second is left behind: it goes on by itself, beside the next delivery of its event. Default: no limit, and one that hangs keeps its worker.
   */
  readonly listenerTimeout?: Duration.Input
  /** A tracker of events in flight beside the dispatcher's own. Default: none. */
  readonly inFlightTracker?: InFlightTracker
  /** Fences every mark by this claim, and renews claims of events in flight. Default: no claims, for a single node. */
  readonly claimLocking?: ClaimLocking
  /** Called after an event was marked RETRY, so that the poller looks up when it is due. */
  readonly onRetryScheduled?: () => void
}

/** The dispatcher of one process. */
export class OutboxDispatcher extends Context.Service<
  OutboxDispatcher,
  {
    /** Puts an event into the hot queue. False when the queue is full or closing. An event that is in flight already counts as taken. */
    readonly enqueueHot: (event: EventEnvelope) => boolean
    /**
     * Puts a polled event into the cold queue, with the number of its failed deliveries and, if known, the row address of its
     * `PolledEvent`. False when the queue is full or closing.
     */
    readonly enqueueCold: (event: EventEnvelope, attempts: number, rowAddress?: string) => boolean
    /** The number of events that the cold queue can still take. 0 while closing. */
    readonly coldQueueRemainingCapacity: () => number
    /** Waits until the cold queue is at most half full. */
    readonly awaitColdCapacity: Effect.Effect<void>
    /** Runs a read of pending rows. An event that finishes meanwhile may still be in its result, and is not taken a second time. */
    readonly whilePolling: <A, E, R>(poll: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** The number of events that are queued or being handled. */
    readonly inFlight: () => number
    /** Waits until no event is queued or being handled. */
    readonly awaitIdle: Effect.Effect<void>
  }
>()("@eventbus/outbox/OutboxDispatcher") {}

const defaults = {
  maxAttempts: 10,
  workerCount: 4,
  hotQueueCapacity: 1000,
  coldQueueCapacity: 1000,
  drainTimeout: "5 seconds" as Duration.Input
}

/**
 * Starts the workers. Fails with all wrong settings at once. Closing the scope drains the queues for `drainTimeout`, then interrupts
 * the workers, and leaves one behind whose listener resists that. Events that were not finished stay pending.
 */
export const make: (
  options?: DispatcherOptions
) => Effect.Effect<OutboxDispatcher["Service"], InvalidOutboxConfig, OutboxStore | ListenerRegistry | Scope.Scope> =
  Effect.fnUntraced(function* (options = {}) {
    yield* checkOptions("OutboxDispatcher", [problemsOf(options, kinds)])
    const settings = withDefaults({ ...defaults, retryPolicy: exponential() }, options)
    const store = yield* OutboxStore
    const tools = yield* makeDeliveryTools(store)
    const callListener = makeCallListener({
      registry: yield* ListenerRegistry,
      interceptors: settings.interceptors ?? [],
      listenerTimeout: settings.listenerTimeout
    })
    const engine = new DispatchEngine({ store, tools, tracker: settings.inFlightTracker, callListener }, settings)

    const endDepths = tools.metrics.observeQueueDepths(() => ({
      hot: engine.queue.size("HOT"),
      cold: engine.queue.size("COLD")
    }))
    const scope = yield* Scope.fork(yield* Effect.scope)
    yield* Effect.forkIn(tools.supervise("done marker", engine.doneMarker.run), scope)
    yield* Effect.forkIn(tools.supervise("postponer", engine.postponer.run), scope)
    const workers = yield* Effect.forEach(Array.from({ length: settings.workerCount }), (_, index) => {
      const worker = engine.makeWorker()
      return Effect.forkIn(tools.supervise(`worker ${index + 1}`, worker.run, { repair: worker.repair }), scope)
    })
    const claim = settings.claimLocking
    if (claim !== undefined) {
      const third = Duration.toMillis(Duration.fromInputUnsafe(claim.lockTimeout)) / 3
      const renewal = Effect.forever(
        Effect.andThen(Effect.sleep(third), renewClaims(store, tools, engine.inFlight, claim))
      )
      yield* Effect.forkIn(tools.supervise("claim renewal", renewal), scope)
    }
    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        engine.close()
        const flush = Effect.andThen(engine.doneMarker.flush, engine.postponer.flush)
        const drained = Effect.andThen(Fiber.awaitAll(workers), flush)
        yield* Effect.timeoutOption(Effect.interruptible(drained), settings.drainTimeout)
        yield* Fiber.interruptAll(workers)
        // Events whose listeners have finished are marked even when other listeners were interrupted.
        yield* Effect.timeoutOption(Effect.interruptible(flush), "1 second")
        endDepths()
        yield* releaseUnfinished(store, engine.inFlight, claim)
      })
    )
    return OutboxDispatcher.of({
      enqueueHot: (event) => engine.enqueue(event, "HOT", 0),
      enqueueCold: (event, attempts, rowAddress) => engine.enqueue(event, "COLD", attempts, rowAddress),
      coldQueueRemainingCapacity: () => (engine.closing ? 0 : settings.coldQueueCapacity - engine.queue.size("COLD")),
      awaitColdCapacity: Effect.suspend(() => (engine.closing ? Effect.never : engine.queue.awaitColdCapacity)),
      whilePolling: (poll) => engine.inFlight.whilePolling(poll, tools.clock, engine.queue.wake),
      inFlight: () => engine.inFlight.size,
      awaitIdle: engine.inFlight.awaitIdle
    })
  })

/** A started dispatcher as a layer. */
export const layer = (
  options?: DispatcherOptions
): Layer.Layer<OutboxDispatcher, InvalidOutboxConfig, OutboxStore | ListenerRegistry> =>
  Layer.effect(OutboxDispatcher, make(options))
