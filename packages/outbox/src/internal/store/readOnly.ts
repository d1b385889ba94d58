/**
 * Connections that take no writes any more: after a failover, a pool may hold connections to the old primary, which is read-only now. They
 * would stay, since they are not broken. The outbox recognises the refusal and ends such connections, so that the pool makes new ones.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { failureOfValue } from "../base/failureText.ts"
import { logWarning } from "../base/log.ts"
import { monitorOf } from "../base/monitor.ts"
import { isReadOnlyRefusal } from "../base/readOnlyRefusal.ts"
import { dialectOf } from "./dialect.ts"
import type { TableNames } from "./tableNames.ts"

/** The name of the problem in health. */
const problemName = "read-only connection"

/** The most connections that are ended after one refusal. A pool may hold more; the next refusal ends those. */
const mostEnded = 10

/** A transaction whose write was refused has rolled back by then, and its connection is in the pool again. */
const rollbackMillis = 100

/** Between two rounds: where every new connection is read-only as well, the server is asked no more often. */
const roundGapMillis = 2000

/** Ends the connection that it runs on, if that takes no writes. A pool drops a connection that was ended, and makes another one. */
const endIfReadOnly =
  "SELECT pg_terminate_backend(pg_backend_pid()) FROM (SELECT 1) AS one WHERE current_setting('transaction_read_only') = 'on'"

/** One client: the outboxes that use it, and when its connections were last looked at. */
interface Client {
  readonly outboxes: Set<TableNames>
  lastRoundMillis: number | undefined
}

const clients = new WeakMap<SqlClient.SqlClient, Client>()

const clientOf = (sql: SqlClient.SqlClient): Client => {
  const client = clients.get(sql) ?? { outboxes: new Set<TableNames>(), lastRoundMillis: undefined }
  clients.set(sql, client)
  return client
}

/** From now on the health of this outbox shows connections of this client that take no writes. */
export const watchRefusals = (sql: SqlClient.SqlClient, names: TableNames): void =>
  void clientOf(sql).outboxes.add(names)

/**
 * Ends the read-only connections of the pool: statements that run at the same time are on connections of their own. Returns whether there may have
 * been one: the refusal may have been that of a read-only transaction. Only PostgreSQL; the driver for MySQL drops them by itself.
 */
const endReadOnlyConnections = (sql: SqlClient.SqlClient): Effect.Effect<boolean> => {
  // A statement that ends its own connection fails.
  const failedToRun = Effect.isFailure(
    Effect.timeout(
      Effect.suspend(() => sql.unsafe(endIfReadOnly)),
      "5 seconds"
    )
  )
  return Effect.map(
    Effect.all(
      Array.from({ length: mostEnded }, () => failedToRun),
      { concurrency: "unbounded" }
    ),
    (ended) => ended.includes(true)
  )
}

/** Looks at a failed statement. After a read-only refusal it says so in log and health, and ends the connection in the background. */
export const noteRefusal = (sql: SqlClient.SqlClient, error: unknown): Effect.Effect<void> => {
  if (!isReadOnlyRefusal(error)) return Effect.void
  return Effect.gen(function* () {
    const nowMillis = (yield* Clock.Clock).currentTimeMillisUnsafe()
    const client = clientOf(sql)
    const monitors = [...client.outboxes].map((names) => monitorOf({ names }))
    const { summary } = failureOfValue(error)
    const due = monitors.filter((monitor) => monitor.report("database", problemName, summary, nowMillis))
    if (due.length > 0) {
      yield* logWarning(
        `outbox: a connection takes no writes, as after a failover; it is given up and made anew: ${summary}`
      )
    }
    const last = client.lastRoundMillis
    if (last !== undefined && Math.abs(nowMillis - last) < roundGapMillis) return
    client.lastRoundMillis = nowMillis
    if (dialectOf(sql).name !== "pg") return
    // Outside the transaction of the caller, if there is one, and once that has rolled back: until then its connection is refused.
    const ended = outsideTransaction(sql, Effect.delay(endReadOnlyConnections(sql), rollbackMillis))
    yield* Effect.forkDetach(
      Effect.map(ended, (isAny) => {
        if (isAny) for (const monitor of monitors) monitor.connectionsRefused()
      })
    )
  })
}

const outsideTransaction = <A>(sql: SqlClient.SqlClient, effect: Effect.Effect<A>): Effect.Effect<A> =>
  Effect.updateContext(effect, (context: Context.Context<never>) => Context.omit(sql.transactionService)(context))

/** A write succeeded: connections take writes again. Cheap: it is asked after every change. */
export const noteWrite = (names: TableNames): void => {
  const monitor = monitorOf({ names })
  if (monitor.has("database")) monitor.clear("database", problemName)
}
