/**
 * Removes terminal rows after a retention, in batches that each are a short transaction of their own. The table is a buffer, not an
 * archive: who must keep events archives them in a listener, or with `archive` here.
 */
import { Context, type Duration, Effect, Exit, Layer, Scope } from "effect"
import { checkOptions, positive, whole } from "./internal/base/options.ts"
import { type InvalidOutboxConfig, InvalidState, type OutboxStoreError } from "./OutboxError.ts"
import { type OutboxEvent, OutboxStore, type Shape as Store, separateUndecodable } from "./OutboxStore.ts"

/** Deletes at most `limit` rows older than `retention`; returns how many. */
export type EventPurger = (retention: Duration.Input, limit: number) => Effect.Effect<number, OutboxStoreError>

/** DONE and DEAD rows, counted from the moment they became so. The purger of every scheduler that is given no other. */
export const terminal = (store: Store): EventPurger => store.purgeTerminal

/** Rows by age of creation whatever their state: only for writer-only tables that nothing marks. */
export const byAge = (store: Store): EventPurger => store.purgeByAge

/**
 * Terminal rows, each batch handed to `archive` before it is deleted. A failing archive deletes nothing. After a crash in between a
 * batch is archived again: key the archive by `eventId`.
 */
export const archiving =
  (store: Store, archive: (events: ReadonlyArray<OutboxEvent>) => Effect.Effect<void, OutboxStoreError>): EventPurger =>
  (retention, limit) =>
    Effect.gen(function* () {
      const found = yield* store.queryTerminal(retention, limit)
      if (found.length === 0) return 0
      yield* archive(separateUndecodable(found).events)
      return yield* store.deleteTerminal(found.map((event) => event.eventId))
    })

export interface PurgeOptions {
  /** Default 7 days. */
  readonly retention?: Duration.Input
  /** Rows of one transaction. Default 500. */
  readonly batchSize?: number
  /** Time between two runs. Default 1 hour. */
  readonly interval?: Duration.Input
}

export class PurgeScheduler extends Context.Service<
  PurgeScheduler,
  {
    /** Runs now and then once per interval. Fails after `close`; a second call changes nothing. */
    readonly start: Effect.Effect<void, InvalidState>
    /** Purges until a batch is not full; returns the number removed. A failure is logged and ends the run. */
    readonly runOnce: Effect.Effect<number>
    readonly close: Effect.Effect<void>
  }
>()("@eventbus/outbox/PurgeScheduler") {}

export type Shape = PurgeScheduler["Service"]

/** A scheduler that is not started yet. Closing the scope closes it. */
export const make: (
  options: PurgeOptions & { readonly purger: EventPurger }
) => Effect.Effect<Shape, InvalidOutboxConfig, Scope.Scope> = Effect.fnUntraced(function* (options) {
  const { purger, retention = "7 days", batchSize = 500, interval = "1 hour" } = options
  yield* checkOptions("PurgeScheduler", [
    positive("retention", retention),
    whole("batchSize", batchSize, 1, 100_000),
    positive("interval", interval)
  ])
  const scope = yield* Scope.fork(yield* Effect.scope)
  let state: "new" | "running" | "closed" = "new"
  const closed = Effect.sync(() => {
    state = "closed"
  })
  yield* Scope.addFinalizer(scope, closed)

  const runOnce = Effect.gen(function* () {
    let total = 0
    for (;;) {
      const removed = yield* Effect.catchCause(purger(retention, batchSize), (cause) =>
        Effect.as(Effect.logFatal("outbox: purge failed", cause), 0)
      )
      total += removed
      if (removed < batchSize) break
    }
    yield* Effect.logInfo(`outbox: purged ${total} events`)
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
      return Effect.asVoid(Effect.forkIn(loop, scope))
    }),
    close: Scope.close(scope, Exit.void)
  })
})

/** A started scheduler over the store's terminal rows. */
export const layer = (options?: PurgeOptions): Layer.Layer<PurgeScheduler, InvalidOutboxConfig, OutboxStore> =>
  Layer.effect(
    PurgeScheduler,
    Effect.gen(function* () {
      const scheduler = yield* make({ ...options, purger: terminal(yield* OutboxStore) })
      yield* Effect.orDie(scheduler.start)
      return scheduler
    })
  )
