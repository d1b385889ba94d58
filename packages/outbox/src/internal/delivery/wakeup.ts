/**
 * Wakes the relays of other processes after a commit, through PostgreSQL's LISTEN and NOTIFY. Other databases have nothing like it:
 * there, the poll interval bounds the latency.
 *
 * The notification is sent after the commit, by itself. `pg_notify` inside every small transaction would halve their throughput,
 * because it serialises commits. Notifications are debounced: the first goes at once, then at most one per 2 ms.
 */
import { Effect, Queue, Schedule, type Scope } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { OutboxStore } from "../../OutboxStore.ts"
import type { WriterHook } from "../../WriterHook.ts"
import { failureOfValue } from "../base/failureText.ts"
import { makeSignal } from "../base/signal.ts"
import { makeDeliveryTools } from "./deliveryTools.ts"

/** A PostgreSQL client's LISTEN, known by its shape so that no driver is imported. */
interface ListeningClient {
  readonly listen: (
    channel: string
  ) => Effect.Effect<Queue.Dequeue<unknown, SqlError.SqlError>, SqlError.SqlError, Scope.Scope>
}

const listeningClient = (sql: SqlClient.SqlClient): ListeningClient | undefined =>
  "listen" in sql && typeof sql.listen === "function" ? (sql as unknown as ListeningClient) : undefined

const minimumGap = "2 millis"

/** A hook that tells other processes of a commit. */
export const notifyHook: Effect.Effect<WriterHook, never, SqlClient.SqlClient | OutboxStore | Scope.Scope> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* OutboxStore
    if (listeningClient(sql) === undefined) return {}
    const tools = yield* makeDeliveryTools(store)
    const signal = makeSignal()
    // A notification is a commit of its own. It need not reach the disk, since the events that it announces have.
    const text = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, '')"
    // Uninterruptible: an outbox that closes right after a commit still tells the other processes.
    const send = Effect.uninterruptible(Effect.ignore(sql.unsafe(text, [store.names.channel])))
    const sender = Effect.forever(signal.await.pipe(Effect.andThen(send), Effect.andThen(Effect.sleep(minimumGap))))
    yield* Effect.forkScoped(tools.supervise("wake-up sender", sender))
    return { afterCommit: () => Effect.sync(signal.raise) }
  }
)

/** Calls `wake` for every notification, and listens again after a broken connection. */
export const listenForWakeups = (
  wake: () => void
): Effect.Effect<void, never, SqlClient.SqlClient | OutboxStore | Scope.Scope> =>
  Effect.gen(function* () {
    const client = listeningClient(yield* SqlClient.SqlClient)
    const store = yield* OutboxStore
    if (client === undefined) return
    const tools = yield* makeDeliveryTools(store)
    const session = Effect.gen(function* () {
      const queue = yield* client.listen(store.names.channel)
      // Events that were written while no connection listened are found at once.
      wake()
      return yield* Effect.forever(Effect.tap(Queue.take(queue), () => Effect.sync(wake)))
    })
    const listener = Effect.scoped(session).pipe(
      Effect.tapError((error) =>
        Effect.logWarning(
          `outbox: the connection that listens for wake-ups broke; trying again: ${failureOfValue(error).summary}`
        )
      ),
      Effect.retry(Schedule.spaced("1 second"))
    )
    yield* Effect.forkScoped(tools.supervise("wake-up listener", listener))
  })
