/**
 * A `SqlClient` over mysql2, for MySQL 8 and MariaDB 10.6 or later.
 *
 * Sessions run at READ COMMITTED, because the gap locks of REPEATABLE READ make claims of several workers deadlock.
 */
import { Kinds, Ranges } from "@eventbus/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlConnection from "effect/sql/SqlConnection"
import * as SqlError from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import mysql, { type PoolConnection } from "mysql2"
import { isReadOnlyRefusal } from "../internal/base/readOnlyRefusal.ts"
import * as OutboxRanges from "../OutboxRanges.ts"

/** Settings of the client. */
export interface MySql2Config {
  /** The server's host. Default `127.0.0.1`. */
  readonly host?: string
  /** The server's port. Default 3306. */
  readonly port?: number
  /** The database. Required. */
  readonly database: string
  /** The user. Required. */
  readonly username: string
  /** The user's password. Default: none. */
  readonly password?: Redacted.Redacted
  /** The most connections of the pool. Default 10. */
  readonly maxConnections?: number
  /** How long opening a connection may take. Default 10 seconds. */
  readonly connectTimeout?: Duration.Input
}

const classify = (cause: unknown, operation: string): SqlError.SqlErrorReason => {
  const props = { cause, message: `Failed to ${operation}`, operation }
  const error = cause as { readonly code?: string; readonly errno?: number; readonly fatal?: boolean } | undefined
  switch (error?.code) {
    case "ER_LOCK_DEADLOCK":
      return new SqlError.DeadlockError(props)
    case "ER_LOCK_WAIT_TIMEOUT":
      return new SqlError.LockTimeoutError(props)
    case "ER_DUP_ENTRY":
      return new SqlError.UniqueViolation({ ...props, constraint: "unknown" })
    case "ER_ACCESS_DENIED_ERROR":
      return new SqlError.AuthenticationError(props)
    case "ER_NO_SUCH_TABLE":
    case "ER_BAD_FIELD_ERROR":
    case "ER_PARSE_ERROR":
      return new SqlError.SqlSyntaxError(props)
    default:
      return error?.fatal === true || /^(PROTOCOL_|ECONN|ETIMEDOUT|EPIPE|ER_SERVER_SHUTDOWN)/.test(error?.code ?? "")
        ? new SqlError.ConnectionError(props)
        : new SqlError.UnknownError(props)
  }
}

const fromCallback = <A>(operation: string, run: (done: (error: Error | null, value?: A) => void) => void) =>
  Effect.callback<A, SqlError.SqlError>((resume) => {
    run((error, value) =>
      resume(
        error === null || error === undefined
          ? Effect.succeed(value as A)
          : Effect.fail(new SqlError.SqlError({ reason: classify(error, operation) }))
      )
    )
  })

type Result = ReadonlyArray<never> | { readonly affectedRows: number }

/** Connections whose server refused a write because it is read-only. */
const readOnly = new WeakSet<PoolConnection>()

const makeConnection = (connection: PoolConnection): SqlConnection.Connection => {
  const run = (text: string, params: ReadonlyArray<unknown>, protocol: "prepared" | "text", shape: "rows" | "arrays") =>
    // A statement that was sent cannot be cancelled. Waiting for its answer keeps the connection usable for the rollback.
    Effect.uninterruptible(
      fromCallback<Result>("execute", (done) => {
        const options = { sql: text, rowsAsArray: shape === "arrays" }
        // Prepared statements accept Buffers but no other typed arrays, and they reject undefined.
        const values = params.map((p) => (p === undefined ? null : p instanceof Uint8Array ? Buffer.from(p) : p))
        const answered = (error: Error | null, result: unknown) => {
          if (error && isReadOnlyRefusal(error)) readOnly.add(connection)
          done(error, result as Result)
        }
        if (protocol === "prepared") connection.execute(options, values as Array<never>, answered)
        else connection.query(options, values, answered)
      })
    )
  const rows = (
    effect: Effect.Effect<Result, SqlError.SqlError>
  ): Effect.Effect<ReadonlyArray<never>, SqlError.SqlError> =>
    Effect.map(effect, (result) => (Array.isArray(result) ? (result as ReadonlyArray<never>) : []))
  const execute: SqlConnection.Connection["execute"] = (text, params, transform) => {
    const all = rows(run(text, params, "prepared", "rows"))
    return transform ? Effect.map(all, transform) : all
  }
  return {
    execute,
    executeUnprepared: (text, params, transform) => {
      const all = rows(run(text, params ?? [], "text", "rows"))
      return transform ? Effect.map(all, transform) : all
    },
    executeRaw: (text, params) => run(text, params, "prepared", "rows"),
    executeValues: (text, params) => rows(run(text, params, "prepared", "arrays")),
    executeValuesUnprepared: (text, params) => rows(run(text, params, "text", "arrays")),
    executeStream: (text, params, transform) =>
      Stream.unwrap(Effect.map(execute(text, params, transform), (all) => Stream.fromIterable(all)))
  }
}

/** A message never shows a password, one that is no Redacted included. */
const password: Kinds.Kind = (path, found) =>
  Kinds.make("a Redacted", Redacted.isRedacted)(path, found).map((issue) => ({
    ...issue,
    found: `a value of type ${typeof found}`
  }))

const makePool = (config: MySql2Config) =>
  mysql.createPool({
    host: config.host ?? "127.0.0.1",
    port: config.port ?? 3306,
    database: config.database,
    user: config.username,
    ...(config.password === undefined ? {} : { password: Redacted.value(config.password) }),
    connectionLimit: config.maxConnections ?? 10,
    connectTimeout: Duration.toMillis(Duration.fromInputUnsafe(config.connectTimeout ?? "10 seconds")),
    supportBigNumbers: true,
    timezone: "Z"
  })

const make: (config: MySql2Config) => Effect.Effect<SqlClient.SqlClient, never, Scope.Scope | Reactivity.Reactivity> =
  Effect.fnUntraced(function* (config) {
    const { connectTimeout, maxConnections } = OutboxRanges.others
    const optional = { host: Kinds.name, port: Ranges.clients.port, password, connectTimeout, maxConnections }
    Kinds.refuse(Kinds.struct(optional, { database: Kinds.name, username: Kinds.name })("MySql2", config))
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => makePool(config)),
      (pool) => Effect.ignore(fromCallback<void>("close", (done) => pool.end((error) => done(error))))
    )
    pool.on("connection", (connection) => connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"))
    const acquirer = Effect.acquireRelease(
      fromCallback<PoolConnection>("connect", (done) => pool.getConnection((e, c) => done(e, c))),
      // A connection that takes no writes leads to the old primary of a failover: the pool makes another one.
      (connection) => Effect.sync(() => (readOnly.has(connection) ? connection.destroy() : connection.release()))
    ).pipe(Effect.map(makeConnection))
    return yield* SqlClient.make({
      driver: "mysql2",
      acquirer,
      transactionAcquirer: acquirer,
      compiler: Statement.makeCompiler({
        dialect: "mysql",
        placeholder: () => "?",
        onIdentifier: Statement.defaultEscape("`"),
        onRecordUpdate: () => ["", []],
        onCustom: () => ["", []]
      }),
      releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
      spanAttributes: [["db.system.name", "mysql"]]
    })
  })

/**
 * A pool of connections, closed with the layer. Connections are opened on demand, and their errors fail the statement. Dies with `ConfigurationValidation` for wrong
 * settings.
 */
export const layer = (config: MySql2Config): Layer.Layer<SqlClient.SqlClient> =>
  Layer.effect(SqlClient.SqlClient, make(config)).pipe(Layer.provide(Reactivity.layer))
