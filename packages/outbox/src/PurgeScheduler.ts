/**
 * Removes terminal rows after a retention (outbox seed §17). Each batch is a short transaction of its own. The table is a buffer and not an
 * archive: keep events with a listener, or with `archiving`.
 */
import { Kinds, UserFunction } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { logText } from "./internal/base/failureText.ts"
import { logFatal, logInfo, logWarning } from "./internal/base/log.ts"
import { purge as kinds } from "./internal/base/optionKinds.ts"
import { checkOptions, problemsOf } from "./internal/base/options.ts"
import { makeDeliveryTools } from "./internal/delivery/deliveryTools.ts"
import { type InvalidOutboxConfig, InvalidState, type OutboxStoreError } from "./OutboxError.ts"
import { type OutboxEvent, OutboxStore, toOutboxEvents } from "./OutboxStore.ts"

/** Deletes at most `limit` rows that are older than `retention`; returns how many. */
export type EventPurger = (retention: Duration.Input, limit: number) => Effect.Effect<number, OutboxStoreError>

/** Purges DONE and DEAD rows. Their age counts from the moment they became so (ruling 40). The default purger. */
export const terminal = (store: OutboxStore["Service"]): EventPurger => store.purgeTerminal

/** Purges rows by age of creation, whatever their state. Only for writer-only tables that nothing marks. */
export const byAge = (store: OutboxStore["Service"]): EventPurger => store.purgeByAge

/**
 * Purges DONE and DEAD rows, and hands each batch to `archive` before it is deleted, rows that could not be decoded (`unreadable`) included. When `archive` fails, nothing is deleted. After a
 * crash in between, the batch is archived again: key the archive by `eventId`.
 */
export const archiving =
  (
    store: OutboxStore["Service"],
    archive: (events: ReadonlyArray<OutboxEvent>) => Effect.Effect<void, OutboxStoreError>
  ): EventPurger =>
  (retention, limit) =>
    Effect.gen(function* () {
      const found = yield* store.queryTerminal(retention, limit)
      if (found.length === 0) return 0
      yield* UserFunction.callIsolated("archive", () => archive(toOutboxEvents(found)))
      return yield* store.deleteTerminal(found.map((event) => event.eventId))
    })

/** Settings of a scheduler (outbox seed §17). */
export interface PurgeOptions {
  /** Rows older than this are removed. Above 0. Default 7 days. */
  readonly retention?: Duration.Input
  /** The most rows of one transaction, 1 to 100,000. Default 500. */
  readonly batchSize?: number
  /** Time between two runs, above 0. Default 1 hour. */
  readonly interval?: Duration.Input
  /**
   * The longest time of one batch, `archive` included, above 0. Health names a batch after a minute. One that takes longer than this is interrupted, and its run has failed.
   * One that resists its interruption for a second is left behind: it goes on by itself, beside the next run. Default 10 minutes.
   */
  readonly batchTimeout?: Duration.Input
}

/** Purges one table again and again. */
export class PurgeScheduler extends Context.Service<
  PurgeScheduler,
  {
    /** Runs at once and then once per interval. Fails with `InvalidState` after `close`; a second call changes nothing. */
    readonly start: Effect.Effect<void, InvalidState>
    /** Purges until a batch is not full; returns the number of rows removed. A failure is logged and ends the run. */
    readonly runOnce: Effect.Effect<number>
    /** Stops the schedule. */
    readonly close: Effect.Effect<void>
  }
>()("@eventbus/outbox/PurgeScheduler") {}

/** Builds a scheduler that is not started yet. Closing the scope closes it. Fails with all wrong settings at once. */
export const make: (
  options: PurgeOptions & { readonly purger: EventPurger }
) => Effect.Effect<PurgeScheduler["Service"], InvalidOutboxConfig, Scope.Scope> = Effect.fnUntraced(
  function* (options) {
    yield* checkOptions("PurgeScheduler", [problemsOf(options, kinds, { purger: Kinds.func })])
    const { purger, retention = "7 days", batchSize = 500, interval = "1 hour", batchTimeout = "10 minutes" } = options
    const scope = yield* Scope.fork(yield* Effect.scope)
    let state: "new" | "running" | "closed" = "new"
    const closed = Effect.sync(() => {
      state = "closed"
    })
    yield* Scope.addFinalizer(scope, closed)
    const store = yield* Effect.serviceOption(OutboxStore)
    const tools = yield* makeDeliveryTools(Option.getOrElse(store, () => ({ names: {} })))

    const purged = UserFunction.callEffect("purger", () => purger(retention, batchSize))
    const bounded = UserFunction.runBounded("purger", purged, { timeout: batchTimeout })
    const tooSlow = Effect.suspend(() => {
      tools.guard.note("purger", Cause.fail("has not ended for a minute"))
      return logWarning("outbox: a batch of the purge has not ended for a minute")
    })
    const watched = Effect.raceFirst(
      bounded,
      Effect.andThen(Effect.sleep(slowMillis), Effect.andThen(tooSlow, Effect.never))
    )
    const purgeBatch = watched.pipe(
      Effect.map((removed) => {
        tools.guard.monitor.clear("function", "purger")
        return tools.guard.call("purger", () => removed, isCount, 0)
      }),
      Effect.catchCause((cause) => {
        tools.guard.note("purger", cause)
        return Effect.as(logFatal(`outbox: purge failed: ${logText(cause)}`), 0)
      })
    )
    const runOnce = Effect.gen(function* () {
      let total = 0
      for (;;) {
        const removed = yield* purgeBatch
        total += removed
        if (removed < batchSize) break
      }
      yield* logInfo(`outbox: purged ${total} events`)
      return total
    })

    return PurgeScheduler.of({
      runOnce,
      start: Effect.suspend((): Effect.Effect<void, InvalidState> => {
        if (state === "closed") {
          return Effect.fail(new InvalidState({ component: "PurgeScheduler", detail: "start after close" }))
        }
        if (state === "running") return Effect.void
        state = "running"
        const loop = Effect.forever(Effect.andThen(runOnce, Effect.sleep(interval)))
        return Effect.asVoid(Effect.forkIn(tools.supervise("purge", loop), scope))
      }),
      close: Scope.close(scope, Exit.void)
    })
  }
)

/** Health and log name a batch that takes longer. */
const slowMillis = 60_000

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0

/** A started scheduler that purges the store's terminal rows. */
export const layer = (options?: PurgeOptions): Layer.Layer<PurgeScheduler, InvalidOutboxConfig, OutboxStore> =>
  Layer.effect(
    PurgeScheduler,
    Effect.gen(function* () {
      const scheduler = yield* make({ ...options, purger: terminal(yield* OutboxStore) })
      yield* Effect.orDie(scheduler.start)
      return scheduler
    })
  )
