/**
 * The cold path: reads pending rows and hands them to a handler. It finds every event that the hot path missed, lost or never had
 * (outbox seed §10).
 *
 * The poller owns the cursor and the rhythm. When idle, it reads once per interval. It reads again at once while batches are full,
 * when it is woken, and when the next retry is due. Cycles never overlap.
 */
import { UserFunction } from "@eventbus/core"
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { logText } from "./internal/base/failureText.ts"
import { logError } from "./internal/base/log.ts"
import { poller as kinds, pollerHandler } from "./internal/base/optionKinds.ts"
import { checkOptions, problemsOf, within } from "./internal/base/options.ts"
import { makeSignal } from "./internal/base/signal.ts"
import { makeDeliveryTools } from "./internal/delivery/deliveryTools.ts"
import { watchTable } from "./internal/delivery/tableWatch.ts"
import type { ClaimLocking } from "./internal/dispatch/inFlightEvents.ts"
import { makePollCycle, type PollerHandler } from "./internal/dispatch/pollCycle.ts"
import type { OutboxDispatcher } from "./OutboxDispatcher.ts"
import { type InvalidOutboxConfig, InvalidState, type OutboxStoreError } from "./OutboxError.ts"
import { poller as range } from "./OutboxRanges.ts"
import { OutboxStore } from "./OutboxStore.ts"

export type { PollerHandler } from "./internal/dispatch/pollCycle.ts"

/** Settings of `make` (outbox seed §10). */
export interface PollerOptions {
  /** The receiver of polled events. Required; `toDispatcher` makes one that feeds a dispatcher. */
  readonly handler: PollerHandler
  /** Events younger than this are left to the hot path, 0 or more. Default 0: none is left out. */
  readonly skipRecent?: Duration.Input
  /** Rows of one query when there is little to do, 1 to 100,000. Default 50. */
  readonly batchSize?: number
  /** Rows of one query while batches are full, `batchSize` to 100,000. Default 1000, or `batchSize` if that is more. */
  readonly maxBatchSize?: number
  /** Longest time between two queries, above 0. Default 5 seconds. */
  readonly interval?: Duration.Input
  /** Claims rows, so that several nodes may poll one table (outbox seed §10). Default: plain polling. */
  readonly claimLocking?: ClaimLocking
}

/** How long closing waits for a running cycle: the rows that it has claimed are handed over or released. */
const endTimeout = "5 seconds"

/** The poller of one table. */
export class OutboxPoller extends Context.Service<
  OutboxPoller,
  {
    /** Polls in the background from now on. Fails with `InvalidState` after `close`; a second call changes nothing. */
    readonly start: Effect.Effect<void, InvalidState>
    /** Runs one cycle; returns the number of events handed over. Fails when the database does. */
    readonly poll: Effect.Effect<number, OutboxStoreError>
    /** Polls soon, without waiting for the interval. */
    readonly wake: () => void
    /** Polls soon, and looks up when the next retry is due. Call it after a retry was scheduled. */
    readonly retryScheduled: () => void
    /** Stops polling. A running cycle ends first, but holds up the close for at most 5 seconds. */
    readonly close: Effect.Effect<void>
  }
>()("@eventbus/outbox/OutboxPoller") {}

/** The problems of the options. `maxBatchSize` is never below `batchSize`. */
const problems = (options: PollerOptions): InvalidOutboxConfig["issues"] => {
  const issues = problemsOf(options, kinds, { handler: pollerHandler })
  const { batchSize = 50, maxBatchSize } = issues.length > 0 ? ({} as Partial<PollerOptions>) : options
  return maxBatchSize === undefined
    ? issues
    : [...issues, ...within("maxBatchSize", maxBatchSize, { ...range.maxBatchSize, minimum: batchSize })]
}

/** Builds a poller that is not started yet. Closing the scope closes it. Fails with all wrong settings at once. */
export const make: (
  options: PollerOptions
) => Effect.Effect<OutboxPoller["Service"], InvalidOutboxConfig, OutboxStore | Scope.Scope> = Effect.fnUntraced(
  function* (options) {
    yield* checkOptions("OutboxPoller", [problems(options)])
    const { handler, claimLocking, skipRecent = 0, batchSize = 50, interval = "5 seconds" } = options
    const { maxBatchSize = Math.max(1000, batchSize) } = options
    const store = yield* OutboxStore
    const tools = yield* makeDeliveryTools(store)
    yield* watchTable(store, tools)
    const cycle = makePollCycle({ store, tools, handler, claimLocking, skipRecent, batchSize, maxBatchSize })
    const oneAtATime = yield* Semaphore.make(1)
    const signal = makeSignal()
    const intervalMillis = Duration.toMillis(Duration.fromInputUnsafe(interval))
    // Retries that an earlier run of this process scheduled may be in the table.
    let mayHaveRetries = true

    // Uninterruptible: a claimed row must end up handed over or released.
    const oneCycle = oneAtATime.withPermit(Effect.uninterruptible(cycle))

    const idleMillis = Effect.suspend(() => {
      if (!mayHaveRetries) return Effect.succeed(intervalMillis)
      return Effect.map(store.nextDue, (due) => {
        if (due === undefined) mayHaveRetries = false
        return Math.min(intervalMillis, Math.ceil(due ?? intervalMillis))
      })
    })

    const cycleAndWait = Effect.gen(function* () {
      const { next } = yield* oneCycle
      if (next === "now") return
      if (next === "later") return yield* Effect.timeoutOption(signal.await, yield* idleMillis)
      const { awaitCapacity } = handler
      yield* awaitCapacity === undefined
        ? Effect.sleep(intervalMillis)
        : UserFunction.callIsolated("awaitCapacity", () => awaitCapacity)
    })

    const logAndWait = (cause: Cause.Cause<unknown>) =>
      Effect.andThen(
        logError(`outbox: polling failed: ${logText(cause)}`),
        Effect.sleep(Math.min(intervalMillis, 1000))
      )

    const loop = Effect.forever(Effect.catchCause(cycleAndWait, logAndWait))
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
        return Effect.asVoid(Effect.forkIn(tools.supervise("poller", loop, { endTimeout }), scope))
      }),
      poll: Effect.map(oneCycle, (result) => result.handed),
      wake: signal.raise,
      retryScheduled: () => {
        mayHaveRetries = true
        signal.raise()
      },
      close: Scope.close(scope, Exit.void)
    })
  }
)

/** A handler that feeds the cold queue of a dispatcher. */
export const toDispatcher = (dispatcher: OutboxDispatcher["Service"]): PollerHandler => ({
  handle: dispatcher.enqueueCold,
  availableCapacity: dispatcher.coldQueueRemainingCapacity,
  awaitCapacity: dispatcher.awaitColdCapacity,
  whilePolling: dispatcher.whilePolling
})

/** The poller as a layer, not started yet. */
export const layer = (options: PollerOptions): Layer.Layer<OutboxPoller, InvalidOutboxConfig, OutboxStore> =>
  Layer.effect(OutboxPoller, make(options))
