/**
 * Marks handled events in batches: what is finished while a statement is on its way travels with the next one, so one statement
 * finishes one event when it is quiet and hundreds under load.
 */
import { Effect, Schedule } from "effect"
import type { OutboxStoreError } from "../OutboxError.ts"

/** Most events of one statement. */
const batchSize = 1000

/** A database that restarts answers again within seconds; until then the events stay in flight and are not delivered twice. */
export const patience = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("2 seconds")]).pipe(
  Schedule.upTo({ times: 10 })
)

export interface Finisher<A> {
  /** Queues a handled event. */
  readonly add: (item: A) => void
  /** Waits while more than two batches are waiting: a stalled database stops the workers instead of filling memory. */
  readonly awaitRoom: Effect.Effect<void>
  /** Waits until everything added so far has been marked (or given up on). */
  readonly flush: Effect.Effect<void>
  /** Writes, for as long as it runs: once per finisher, in the background. */
  readonly run: Effect.Effect<never>
}

export interface FinisherOptions<A> {
  readonly mark: (items: ReadonlyArray<A>) => Effect.Effect<unknown, OutboxStoreError>
  /** Called once per item when its mark is in the database, or was given up. */
  readonly settled: (item: A) => void
}

export const makeFinisher = <A>(options: FinisherOptions<A>): Finisher<A> => {
  const pending: Array<A> = []
  let inFlight = 0
  let wakeWriter: (() => void) | undefined
  let waiting: Array<{ readonly limit: number; readonly resume: () => void }> = []

  const notify = () => {
    const open = pending.length + inFlight
    const [ready, rest] = [waiting.filter((w) => open <= w.limit), waiting.filter((w) => open > w.limit)]
    waiting = rest
    for (const w of ready) w.resume()
  }
  const until = (limit: number) =>
    Effect.suspend(() =>
      pending.length + inFlight <= limit
        ? Effect.void
        : Effect.callback<void>((resume) => {
            const entry = { limit, resume: () => resume(Effect.void) }
            waiting.push(entry)
            return Effect.sync(() => {
              waiting = waiting.filter((w) => w !== entry)
            })
          })
    )

  const awaitWork = Effect.callback<void>((resume) => {
    if (pending.length > 0) resume(Effect.void)
    else wakeWriter = () => resume(Effect.void)
    return Effect.sync(() => {
      wakeWriter = undefined
    })
  })

  const writeBatch = Effect.suspend(() => {
    const batch = pending.splice(0, batchSize)
    inFlight = batch.length
    return options.mark(batch).pipe(
      Effect.tapError((error) => Effect.logError("outbox: marking finished events failed", error)),
      Effect.retry(patience),
      Effect.catchCause((cause) =>
        Effect.logError(`outbox: gave up marking ${batch.length} finished events; they will be delivered again`, cause)
      ),
      Effect.ensuring(
        Effect.sync(() => {
          for (const item of batch) options.settled(item)
          inFlight = 0
          notify()
        })
      )
    )
  })

  return {
    add: (item) => {
      pending.push(item)
      // The writer may run, and wait anew, before the call returns: the slot is cleared first.
      const wake = wakeWriter
      wakeWriter = undefined
      wake?.()
    },
    awaitRoom: until(2 * batchSize),
    flush: until(0),
    // It yields before it writes: workers that finish in this same turn travel together.
    run: Effect.forever(Effect.andThen(Effect.andThen(awaitWork, Effect.yieldNow), writeBatch))
  }
}
