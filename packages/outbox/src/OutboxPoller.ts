/**
 * Reads pending rows and hands them to a handler: the cold way, which finds everything that the hot path missed, lost or never had.
 *
 * Owns the cursor and the rhythm. Idle, it asks once per interval; it asks again at once while batches come back full, when it is
 * woken, and when the next retry is due. Cycles never overlap.
 */
import { type Cause, Context, Duration, Effect, Exit, Layer, Result, Scope, Semaphore } from "effect"
import type { EventEnvelope } from "./EventEnvelope.ts"
import { checkOptions, positive, whole } from "./internal/base/options.ts"
import { makeSignal } from "./internal/base/signal.ts"
import * as MetricsExporter from "./MetricsExporter.ts"
import type * as Dispatcher from "./OutboxDispatcher.ts"
import { type InvalidOutboxConfig, InvalidState, type OutboxStoreError } from "./OutboxError.ts"
import { type Fence, OutboxStore, openFence, type PollCursor, type PolledEvent } from "./OutboxStore.ts"

/** Where polled events go. */
export interface PollerHandler {
  /** False ends the cycle: the rest stays in the database for the next one. */
  readonly handle: (event: EventEnvelope, attempts: number, place?: string) => boolean
  /** Events that may be handed over now. 0 means no query is made. Default: no limit. */
  readonly availableCapacity?: () => number
  /** Waits for capacity after there was none. Default: the interval. */
  readonly awaitCapacity?: Effect.Effect<void>
  /** Wraps a cycle, so that what finishes during its query is not taken again. */
  readonly whilePolling?: <A, E, R>(poll: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export interface PollerOptions {
  readonly handler: PollerHandler
  /** Events younger than this are left to the hot path. Default 0: none are. */
  readonly skipRecent?: Duration.Input
  /** Rows of one query when it is quiet. Default 50. */
  readonly batchSize?: number
  /** Rows of one query while batches come back full. Default 1000 (or `batchSize` if that is more). */
  readonly maxBatchSize?: number
  /** Longest time between two queries. Default 5 seconds. */
  readonly interval?: Duration.Input
  /** Takes claims, so that several nodes may poll one table. Default: plain polling. */
  readonly claimLocking?: Dispatcher.ClaimLocking
}

export class OutboxPoller extends Context.Service<
  OutboxPoller,
  {
    /** Begins to poll in the background. Fails after `close`; a second call changes nothing. */
    readonly start: Effect.Effect<void, InvalidState>
    /** One cycle; returns the number of events handed over. */
    readonly poll: Effect.Effect<number, OutboxStoreError>
    /** Polls soon, without waiting for the interval. */
    readonly wake: () => void
    /** As `wake`, for a retry that was scheduled: its due time is looked up. */
    readonly retryScheduled: () => void
    /** Stops; a cycle under way ends first. */
    readonly close: Effect.Effect<void>
  }
>()("@eventbus/outbox/OutboxPoller") {}

export type Shape = OutboxPoller["Service"]

/** What a cycle found out, and so when the next one should be. */
interface Cycle {
  readonly handed: number
  readonly next: "now" | "later" | "when there is capacity"
}

/** A poller that is not started yet. Closing the scope closes it. */
export const make: (options: PollerOptions) => Effect.Effect<Shape, InvalidOutboxConfig, OutboxStore | Scope.Scope> =
  Effect.fnUntraced(function* (options) {
    const { handler, claimLocking: claim } = options
    const skipRecent = options.skipRecent ?? 0
    const batchSize = options.batchSize ?? 50
    const maxBatchSize = options.maxBatchSize ?? Math.max(1000, batchSize)
    const interval = options.interval ?? "5 seconds"
    yield* checkOptions("OutboxPoller", [
      whole("batchSize", batchSize, 1, 100_000),
      whole("maxBatchSize", maxBatchSize, batchSize, 100_000),
      positive("interval", interval),
      ...(claim === undefined ? [] : [positive("claimLocking.lockTimeout", claim.lockTimeout)])
    ])
    const store = yield* OutboxStore
    const metrics = yield* MetricsExporter.Current
    const oneAtATime = yield* Semaphore.make(1)
    const signal = makeSignal()
    const fence: Fence = claim === undefined ? openFence : { _tag: "Claim", owner: claim.owner }
    const intervalMillis = Duration.toMillis(Duration.fromInputUnsafe(interval))
    let cursor: PollCursor | undefined
    let size = batchSize
    // Retries of an earlier life of this process may be waiting in the table.
    let retriesMayWait = true

    const read = (limit: number) =>
      claim === undefined
        ? store.pollPending({ limit, skipRecent, ...(cursor === undefined ? {} : { after: cursor }) })
        : store.claimPending({ limit, skipRecent, ...claim })

    const bury = ({ eventId, envelope }: PolledEvent) => {
      if (Result.isSuccess(envelope)) return Effect.void
      const detail = envelope.failure.message
      return Effect.logFatal(`outbox: ${eventId} cannot be decoded and is DEAD: ${detail}`).pipe(
        Effect.andThen(store.markDead(eventId, detail, fence)),
        Effect.tap(() => Effect.sync(metrics.incrementDispatchDead))
      )
    }

    /** Hands rows over in order until one is refused. */
    const handOver = Effect.fnUntraced(function* (polled: ReadonlyArray<PolledEvent>) {
      const unreadable = polled.filter(({ envelope }) => Result.isFailure(envelope))
      yield* Effect.forEach(unreadable, bury, { discard: true })
      const refusedAt = polled.findIndex(
        ({ envelope, attempts, rowAddress: place }) =>
          Result.isSuccess(envelope) && !handler.handle(envelope.success, attempts, place)
      )
      const refused = refusedAt < 0 ? [] : polled.slice(refusedAt).filter(({ envelope }) => Result.isSuccess(envelope))
      const ids = refused.map((event) => event.eventId)
      if (claim !== undefined) yield* store.releaseClaims(claim.owner, ids)
      return { handed: polled.length - unreadable.length - refused.length, refused: refused.length }
    })

    const cycle: Effect.Effect<Cycle, OutboxStoreError> = Effect.suspend(() => {
      const capacity = handler.availableCapacity?.() ?? Number.MAX_SAFE_INTEGER
      const limit = Math.min(size, capacity)
      if (limit < 1) return Effect.succeed<Cycle>({ handed: 0, next: "when there is capacity" })
      const work = Effect.gen(function* () {
        const polled = yield* read(limit)
        if (polled.length > 0 && cursor === undefined) metrics.recordOldestLagMs(polled[0]!.ageMillis)
        else if (polled.length === 0) metrics.recordOldestLagMs(0)
        const { handed, refused } = yield* handOver(polled)
        const full = polled.length === limit && refused === 0
        // From behind the last row while batches are full, so that rows in flight are not read again; else from the start, where
        // rows of slow transactions turn up.
        cursor = full && claim === undefined ? polled.at(-1) : undefined
        size = full ? Math.min(maxBatchSize, size * 2) : batchSize
        const next = refused > 0 ? "when there is capacity" : full ? "now" : "later"
        return { handed, next } as const
      })
      return handler.whilePolling === undefined ? work : handler.whilePolling(work)
    })

    /** A claim must end up handed over or released, so a cycle is not cut in half. */
    const oneCycle = oneAtATime.withPermit(Effect.uninterruptible(cycle))

    const idleMillis = Effect.suspend(() => {
      if (!retriesMayWait) return Effect.succeed(intervalMillis)
      return Effect.map(store.nextDue, (due) => {
        if (due === undefined) retriesMayWait = false
        return Math.min(intervalMillis, Math.ceil(due ?? intervalMillis))
      })
    })

    const pause = (millis: number) => Effect.timeoutOption(signal.await, millis)

    const turn = Effect.gen(function* () {
      const { next } = yield* oneCycle
      if (next === "now") return
      if (next === "later") return yield* pause(yield* idleMillis)
      yield* handler.awaitCapacity ?? Effect.sleep(intervalMillis)
    })

    const survive = (cause: Cause.Cause<unknown>) =>
      Effect.andThen(Effect.logError("outbox: polling failed", cause), Effect.sleep(Math.min(intervalMillis, 1000)))

    const loop = Effect.forever(Effect.catchCause(turn, survive))
    const scope = yield* Scope.fork(yield* Effect.scope)
    let state: "new" | "running" | "closed" = "new"
    yield* Scope.addFinalizer(
      scope,
      Effect.sync(() => {
        state = "closed"
      })
    )

    return OutboxPoller.of({
      start: Effect.suspend((): Effect.Effect<void, InvalidState> => {
        if (state === "closed")
          return Effect.fail(new InvalidState({ component: "OutboxPoller", detail: "start after close" }))
        if (state === "running") return Effect.void
        state = "running"
        return Effect.asVoid(Effect.forkIn(loop, scope))
      }),
      poll: Effect.map(oneCycle, (result) => result.handed),
      wake: signal.raise,
      retryScheduled: () => {
        retriesMayWait = true
        signal.raise()
      },
      close: Scope.close(scope, Exit.void)
    })
  })

/** A handler that feeds the dispatcher's cold queue. */
export const toDispatcher = (dispatcher: Dispatcher.Shape): PollerHandler => ({
  handle: dispatcher.enqueueCold,
  availableCapacity: dispatcher.coldQueueRemainingCapacity,
  awaitCapacity: dispatcher.awaitColdCapacity,
  whilePolling: dispatcher.whilePolling
})

export const layer = (options: PollerOptions): Layer.Layer<OutboxPoller, InvalidOutboxConfig, OutboxStore> =>
  Layer.effect(OutboxPoller, make(options))
