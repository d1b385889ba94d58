/**
 * Marks events in batches: delivered ones DONE, and those of a closed gate as postponed. Events that come while a statement runs go into
 * the next one. So one statement marks one event when it is quiet, and hundreds under load.
 */
import { UserFunction } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { OutboxStoreError } from "../../OutboxError.ts"
import { ConditionVariable } from "../base/conditionVariable.ts"
import { failureOfValue, logText } from "../base/failureText.ts"
import { logError, logWarning } from "../base/log.ts"

/** The most events of one statement. */
const batchSize = 1000

/**
 * The backoff of marks that the database refuses: about 10 seconds in all. A database that restarts answers again within seconds;
 * until then the events stay in flight and are not delivered twice.
 */
const retryBackoff = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("2 seconds")]).pipe(
  Schedule.upTo({ times: 10 })
)

/** Repeats the mark of one event while the database refuses it. The first refusal is logged. A store of the user's may throw: that is a defect. */
export const retriedMark = <A>(
  eventId: string,
  mark: () => Effect.Effect<A, OutboxStoreError>
): Effect.Effect<A, OutboxStoreError> =>
  Effect.suspend(() => {
    let refusals = 0
    return UserFunction.callEffect("the mark of an event", mark).pipe(
      Effect.tapError((error) =>
        refusals++ === 0
          ? logWarning(`outbox: marking ${eventId} failed; trying again: ${failureOfValue(error).summary}`)
          : Effect.void
      ),
      Effect.retry(retryBackoff)
    )
  })

export interface BatchMarker<A> {
  /** Queues an event. */
  readonly add: (item: A) => void
  /** Waits while more than two batches are queued: a stalled database stops the workers instead of filling memory. */
  readonly awaitCapacity: Effect.Effect<void>
  /** Waits until every event added so far has been marked or given up. */
  readonly flush: Effect.Effect<void>
  /** Writes the marks for as long as it runs. Run it once per marker, in the background. */
  readonly run: Effect.Effect<never>
}

export interface BatchMarkerOptions<A> {
  /**
   * The number of statements that may run at once. With 1, marks keep their order: after a crash, only the last deliveries are
   * repeated. With 2, one statement runs while the other's commit reaches the disk.
   */
  readonly writers: 1 | 2
  /** The word for the events in a log line: `delivered` or `postponed`. */
  readonly what: string
  readonly mark: (items: ReadonlyArray<A>) => Effect.Effect<unknown, OutboxStoreError>
  /** Called once per event when its mark is in the database or was given up. */
  readonly onMarked: (item: A) => void
}

export const makeBatchMarker = <A>(options: BatchMarkerOptions<A>): BatchMarker<A> => {
  const queued: Array<A> = []
  let inStatements = 0
  const work = new ConditionVariable()
  const progress = new ConditionVariable()
  const atMost = (limit: number) => progress.await(() => queued.length + inStatements <= limit)
  const awaitWork = work.await(() => queued.length > 0)

  const writeBatch = Effect.suspend(() => {
    const batch = queued.splice(0, batchSize)
    if (batch.length === 0) return Effect.void
    inStatements += batch.length
    return UserFunction.callEffect(`mark ${options.what}`, () => options.mark(batch)).pipe(
      Effect.tapError((error) =>
        logError(`outbox: marking ${options.what} events failed; trying again: ${failureOfValue(error).summary}`)
      ),
      Effect.retry(retryBackoff),
      Effect.catchCause((cause) =>
        logError(
          `outbox: gave up marking ${batch.length} ${options.what} events; they will be delivered again: ${logText(cause)}`
        )
      ),
      Effect.ensuring(
        Effect.sync(() => {
          for (const item of batch) options.onMarked(item)
          inStatements -= batch.length
          progress.notifyReady()
        })
      )
    )
  })

  // It yields before it writes, so that events of workers that finish in the same scheduler turn share one statement.
  const write = Effect.forever(Effect.andThen(Effect.andThen(awaitWork, Effect.yieldNow), writeBatch))

  return {
    add: (item) => {
      queued.push(item)
      if (!work.isEmpty) work.notifyOne()
    },
    awaitCapacity: atMost(2 * batchSize),
    flush: atMost(0),
    run: Effect.all(
      Array.from({ length: options.writers }, () => write),
      { concurrency: "unbounded" }
    ).pipe(Effect.andThen(Effect.never))
  }
}
