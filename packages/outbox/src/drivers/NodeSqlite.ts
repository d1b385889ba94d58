/**
 * A `SqlClient` over `node:sqlite`, which is part of Node: the embedded database of the outbox, without a native dependency.
 *
 * SQLite has one writer. All statements of one client share a connection; a transaction holds it from BEGIN IMMEDIATE to its end.
 */
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite"
import { Kinds } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlConnection from "effect/sql/SqlConnection"
import * as SqlError from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import * as OutboxRanges from "../OutboxRanges.ts"

/** Settings of the client. */
export interface NodeSqliteConfig {
  /** The path of the database, or `:memory:`. Required. */
  readonly filename: string
  /** How long a statement waits while another process writes. Default 5 seconds. */
  readonly busyTimeout?: Duration.Input
  /**
   * `PRAGMA synchronous`. `full` loses no commit. `normal` may lose the last commits in a power cut, and none when the process crashes.
   * Default `full`.
   */
  readonly synchronous?: "normal" | "full"
  /** The most prepared statements that are kept. Default 100. */
  readonly statementCacheSize?: number
}

const sqlError = (operation: string) => (cause: unknown) =>
  new SqlError.SqlError({
    reason: SqlError.classifySqliteError(cause, { message: `Failed to ${operation}`, operation })
  })

const open = (config: NodeSqliteConfig, clock: Clock.Clock): DatabaseSync => {
  const db = new DatabaseSync(config.filename, {
    timeout: Duration.toMillis(Duration.fromInputUnsafe(config.busyTimeout ?? "5 seconds"))
  })
  if (config.filename !== ":memory:") db.exec("PRAGMA journal_mode = WAL")
  db.exec(`PRAGMA synchronous = ${config.synchronous === "normal" ? "NORMAL" : "FULL"}`)
  // The database's clock is a SQL function. It returns microseconds since the epoch, from the Effect clock of the client's creation.
  db.function("outbox_now_micros", () => BigInt(Math.trunc(clock.currentTimeMillisUnsafe())) * 1000n)
  return db
}

/** A cache of prepared statements by text. It drops the least recently used one first. */
const makeStatementCache = (db: DatabaseSync, size: number) => {
  const statements = new Map<string, StatementSync>()
  return (text: string): StatementSync => {
    const known = statements.get(text)
    const statement = known ?? db.prepare(text)
    statements.delete(text)
    statements.set(text, statement)
    if (statements.size > size) statements.delete(statements.keys().next().value!)
    return statement
  }
}

const toInput = (value: unknown): SQLInputValue =>
  value === undefined ? null : typeof value === "boolean" ? Number(value) : (value as SQLInputValue)

const makeConnection = (db: DatabaseSync, cacheSize: number): SqlConnection.Connection => {
  const prepare = makeStatementCache(db, cacheSize)
  const run = (text: string, params: ReadonlyArray<unknown>, shape: "rows" | "arrays" | "summary") =>
    Effect.try({
      try: (): ReadonlyArray<never> | { readonly changes: number | bigint } => {
        const statement = prepare(text)
        statement.setReturnArrays(shape === "arrays")
        const input = params.map(toInput)
        if (statement.columns().length > 0) return statement.all(...input) as unknown as ReadonlyArray<never>
        const summary = statement.run(...input)
        return shape === "summary" ? summary : []
      },
      catch: sqlError("execute")
    })
  const rows = (text: string, params: ReadonlyArray<unknown>, shape: "rows" | "arrays") =>
    Effect.map(run(text, params, shape), (result) => result as ReadonlyArray<never>)
  const execute: SqlConnection.Connection["execute"] = (text, params, transform) =>
    transform ? Effect.map(rows(text, params, "rows"), transform) : rows(text, params, "rows")
  return {
    execute,
    executeUnprepared: execute,
    executeRaw: (text, params) => run(text, params, "summary"),
    executeValues: (text, params) => rows(text, params, "arrays"),
    executeValuesUnprepared: (text, params) => rows(text, params, "arrays"),
    executeStream: (text, params, transform) =>
      Stream.unwrap(Effect.map(execute(text, params, transform), (all) => Stream.fromIterable(all)))
  }
}

const make: (
  config: NodeSqliteConfig
) => Effect.Effect<SqlClient.SqlClient, SqlError.SqlError, Scope.Scope | Reactivity.Reactivity> = Effect.fnUntraced(
  function* (config) {
    const clock = yield* Clock.Clock
    const { busyTimeout, statementCacheSize } = OutboxRanges.others
    const optional = { busyTimeout, statementCacheSize, synchronous: Kinds.oneOf(["normal", "full"]) }
    Kinds.refuse(Kinds.struct(optional, { filename: Kinds.name })("NodeSqlite", config))
    const db = yield* Effect.acquireRelease(
      Effect.try({ try: () => open(config, clock), catch: sqlError("open") }),
      (db) => Effect.sync(() => db.close())
    )
    const connection = makeConnection(db, config.statementCacheSize ?? 100)
    const semaphore = yield* Semaphore.make(1)
    return yield* SqlClient.make({
      driver: "node-sqlite",
      ...SqlClient.makeSqliteAcquirers({
        connection: Effect.succeed(connection),
        semaphore,
        isTransaction: () => db.isTransaction
      }),
      compiler: Statement.makeCompilerSqlite(),
      beginTransaction: "BEGIN IMMEDIATE",
      releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
      spanAttributes: [["db.system.name", "sqlite"]]
    })
  }
)

/** An open database, closed with the layer. Fails when it cannot be opened. Dies with `ConfigurationValidation` for wrong settings. */
export const layer = (config: NodeSqliteConfig): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  Layer.effect(SqlClient.SqlClient, make(config)).pipe(Layer.provide(Reactivity.layer))
