/**
 * Marks handled events in batches: what is finished while a statement is on its way travels with the next one, so one statement
 * finishes one event when it is quiet and hundreds under load.
 */
import { Effect, Schedule } from "effect"
import type { OutboxStoreError } from "../../OutboxError.ts"
import { ConditionVariable } from "../base/conditionVariable.ts"

/** Most events of one statement. */
const batchSize = 1000

/** A database that restarts answers again within seconds; until then the events stay in flight and are not delivered twice. */
export const retryBackoff = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("2 seconds")]).pipe(
  Schedule.upTo({ times: 10 })
)

export interface DoneMarker<A> {
  /** Queues a handled event. */
  readonly add: (item: A) => void
  /** Waits while more than two batches are waiting: a stalled database stops the workers instead of filling memory. */
  readonly awaitCapacity: Effect.Effect<void>
  /** Waits until everything added so far has been marked (or given up on). */
  readonly flush: Effect.Effect<void>
  /** Writes, for as long as it runs: once per finisher, in the background. */
  readonly run: Effect.Effect<never>
}

export interface DoneMarkerOptions<A> {
  /**
   * Statements on their way at once. One keeps the order of marks: after a crash, what comes again is the end of what was delivered.
   * Two use the time in which the other one's commit reaches the disk.
   */
  readonly writers: 1 | 2
  readonly mark: (items: ReadonlyArray<A>) => Effect.Effect<unknown, OutboxStoreError>
  /** Called once per item when its mark is in the database, or was given up. */
  readonly onMarked: (item: A) => void
}

export const makeDoneMarker = <A>(options: DoneMarkerOptions<A>): DoneMarker<A> => {
  const pending: Array<A> = []
  let inFlight = 0
  const idleWriters = new ConditionVariable()
  const waiting = new ConditionVariable()
  const until = (limit: number) => waiting.await(() => pending.length + inFlight <= limit)
  const awaitWork = idleWriters.await(() => pending.length > 0)

  const writeBatch = Effect.suspend(() => {
    const batch = pending.splice(0, batchSize)
    if (batch.length === 0) return Effect.void
    inFlight += batch.length
    return options.mark(batch).pipe(
      Effect.tapError((error) => Effect.logError("outbox: marking finished events failed", error)),
      Effect.retry(retryBackoff),
      Effect.catchCause((cause) =>
        Effect.logError(`outbox: gave up marking ${batch.length} finished events; they will be delivered again`, cause)
      ),
      Effect.ensuring(
        Effect.sync(() => {
          for (const item of batch) options.onMarked(item)
          inFlight -= batch.length
          waiting.notifyReady()
        })
      )
    )
  })

  // It yields before it writes: workers that finish in this same turn travel together.
  const write = Effect.forever(Effect.andThen(Effect.andThen(awaitWork, Effect.yieldNow), writeBatch))

  return {
    add: (item) => {
      pending.push(item)
      if (!idleWriters.isEmpty) idleWriters.notifyOne()
    },
    awaitCapacity: until(2 * batchSize),
    flush: until(0),
    run: Effect.all(
      Array.from({ length: options.writers }, () => write),
      { concurrency: "unbounded" }
    ).pipe(Effect.andThen(Effect.never))
  }
}
