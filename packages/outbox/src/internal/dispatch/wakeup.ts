/**
 * Wakes the relays of other processes after a commit, through PostgreSQL's LISTEN and NOTIFY. Elsewhere it does nothing, and the
 * poll interval bounds the latency.
 *
 * The notification goes out after the commit, on its own: `pg_notify` inside of every small transaction costs half of their
 * throughput, because it serialises commits. It is debounced: the first goes at once, then at most one per 2 ms.
 */
import { Effect, Queue, Schedule, type Scope } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { OutboxStore } from "../../OutboxStore.ts"
import type { WriterHook } from "../../WriterHook.ts"
import { makeSignal } from "../base/signal.ts"

/** What a PostgreSQL client can do beside SQL, known by its shape so that no driver is imported. */
interface Notifying {
  readonly listen: (
    channel: string
  ) => Effect.Effect<Queue.Dequeue<unknown, SqlError.SqlError>, SqlError.SqlError, Scope.Scope>
}

const notifying = (sql: SqlClient.SqlClient): Notifying | undefined =>
  "listen" in sql && typeof sql.listen === "function" ? (sql as unknown as Notifying) : undefined

const minimumGap = "2 millis"

/** A hook that tells other processes that something committed. */
export const hook: Effect.Effect<WriterHook, never, SqlClient.SqlClient | OutboxStore | Scope.Scope> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const { names } = yield* OutboxStore
    if (notifying(sql) === undefined) return {}
    const signal = makeSignal()
    // A notification is a commit of its own. It need not reach the disk: what it tells of has done so already.
    const text = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, '')"
    // Uninterruptible: closing right after a commit still tells the others.
    const send = Effect.uninterruptible(Effect.ignore(sql.unsafe(text, [names.channel])))
    yield* Effect.forkScoped(
      Effect.forever(signal.await.pipe(Effect.andThen(send), Effect.andThen(Effect.sleep(minimumGap))))
    )
    return { afterCommit: () => Effect.sync(signal.raise) }
  }
)

/** Calls `wake` for every notification; listens again after a broken connection. */
export const listen = (wake: () => void): Effect.Effect<void, never, SqlClient.SqlClient | OutboxStore | Scope.Scope> =>
  Effect.gen(function* () {
    const client = notifying(yield* SqlClient.SqlClient)
    const { names } = yield* OutboxStore
    if (client === undefined) return
    const session = Effect.gen(function* () {
      const queue = yield* client.listen(names.channel)
      // What was written while nobody listened is found at once.
      wake()
      return yield* Effect.forever(Effect.tap(Queue.take(queue), () => Effect.sync(wake)))
    })
    yield* Effect.scoped(session).pipe(
      Effect.tapError((error) => Effect.logWarning("outbox: listening for wake-ups broke; trying again", error)),
      Effect.retry(Schedule.spaced("1 second")),
      Effect.forkScoped
    )
  })
