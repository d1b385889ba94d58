/**
 * Wakes the relays of other processes after a commit, through PostgreSQL's LISTEN and NOTIFY. Other databases have nothing like it:
 * there, the poll interval bounds the latency.
 *
 * The notification is sent after the commit, by itself. `pg_notify` inside every small transaction would halve their throughput,
 * because it serialises commits. Notifications are debounced: the first goes at once, then at most one per 2 ms.
 *
 * Listening holds a connection. Where the pool has none to spare, the outbox does not listen (ruling 87).
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlError from "effect/sql/SqlError"
import { OutboxStore } from "../../OutboxStore.ts"
import type { WriterHook } from "../../WriterHook.ts"
import { failureOfValue } from "../base/failureText.ts"
import { logWarning } from "../base/log.ts"
import { makeSignal } from "../base/signal.ts"
import { makeDeliveryTools } from "./deliveryTools.ts"

/** A PostgreSQL client's LISTEN, known by its shape so that no driver is imported. */
interface ListeningClient {
  readonly listen: (
    channel: string
  ) => Effect.Effect<Queue.Dequeue<unknown, SqlError.SqlError>, SqlError.SqlError, Scope.Scope>
  readonly config?: { readonly maxConnections?: number | undefined }
}

const listeningClient = (sql: SqlClient.SqlClient): ListeningClient | undefined =>
  "listen" in sql && typeof sql.listen === "function" ? (sql as unknown as ListeningClient) : undefined

const minimumGap = "2 millis"

/** While the outbox listens, the pool must still answer a statement within this time. */
const probeTimeout = "3 seconds"

/** The wait before the outbox tries again to listen on a pool that had no connection to spare. */
const noRoomGap = "10 minutes"

/** Another connection of the pool turned out to take no writes. */
class ConnectionRefused extends Data.TaggedError("ConnectionRefused") {
  override readonly message = "another connection of the pool takes no writes, as after a failover"
}

/** The pool has no connection to spare for listening. */
class NoConnectionToSpare extends Data.TaggedError("NoConnectionToSpare") {}

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

const withoutListening =
  "outbox: the connection pool has no connection to spare for listening, so writes of other processes are found at the next poll (interval). Give the client at least 2 connections, and 1 more for each outbox that shares it."

/** Calls `wake` for every notification, and listens again after a broken connection. */
export const listenForWakeups = (
  wake: () => void
): Effect.Effect<void, never, SqlClient.SqlClient | OutboxStore | Scope.Scope> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const client = listeningClient(sql)
    const store = yield* OutboxStore
    if (client === undefined) return
    const tools = yield* makeDeliveryTools(store)
    if ((client.config?.maxConnections ?? 2) < 2) return yield* logWarning(withoutListening)
    const probe = Effect.timeoutOrElse(sql.unsafe("SELECT 1"), {
      duration: probeTimeout,
      orElse: () => Effect.fail(new NoConnectionToSpare())
    })
    const session = Effect.gen(function* () {
      const queue = yield* client.listen(store.names.channel)
      yield* probe
      // Events that were written while no connection listened are found at once.
      wake()
      const refused = makeSignal()
      yield* Effect.acquireRelease(
        Effect.sync(() => tools.guard.monitor.watchConnections(refused.raise)),
        (stop) => Effect.sync(stop)
      )
      // The notifications of a new primary do not come over a connection to the old one.
      return yield* Effect.raceFirst(
        Effect.forever(Effect.tap(Queue.take(queue), () => Effect.sync(wake))),
        Effect.andThen(refused.await, Effect.fail(new ConnectionRefused()))
      )
    })
    const listener = Effect.scoped(session).pipe(
      Effect.catchTag("NoConnectionToSpare", () =>
        Effect.andThen(logWarning(withoutListening), Effect.sleep(noRoomGap))
      ),
      Effect.tapError((error) =>
        logWarning(
          `outbox: the connection that listens for wake-ups broke; trying again: ${failureOfValue(error).summary}`
        )
      ),
      Effect.retry(Schedule.spaced("1 second")),
      Effect.forever
    )
    yield* Effect.forkScoped(tools.supervise("wake-up listener", listener))
  })
