/**
 * The versions of the outbox tables, and how a live database gets to the newest one.
 *
 * A version only adds: no column is dropped, and none becomes NOT NULL without a default. So nodes of every older version go on beside
 * newer ones. The version table says which versions a database has. A migration that has nothing to do takes no lock on the event table.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as SqlClient from "effect/sql/SqlClient"
import type * as SqlConnection from "effect/sql/SqlConnection"
import * as SqlError from "effect/sql/SqlError"
import { createStatements } from "./createStatements.ts"
import type { DialectName } from "./dialect.ts"
import { type TableNames, tableNames } from "./tableNames.ts"

/** One version of the tables. */
interface Migration {
  /** 1 or more, without gaps. */
  readonly version: number
  /** The statements that lead to this version from the one before. Each may be run again. */
  readonly statements: (dialect: DialectName, table: string) => ReadonlyArray<string>
}

/** All versions. Add a version at the end; never change one that was released. */
const migrations: ReadonlyArray<Migration> = [{ version: 1, statements: createStatements }]

/** The longest wait for a lock, of the migration itself and of its statements. Writers wait behind a statement that waits. */
const lockMillis = 2000

const createVersionTable = (dialect: DialectName, { version }: TableNames): string =>
  `CREATE TABLE IF NOT EXISTS ${version} (version ${dialect === "sqlite" ? "INTEGER" : "int"} NOT NULL PRIMARY KEY, applied_at ${
    dialect === "pg" ? "timestamptz(6)" : dialect === "mysql" ? "datetime(6)" : "INTEGER"
  } NOT NULL)${dialect === "mysql" ? " ENGINE = InnoDB" : ""}`

/** Notes a version as applied. A version that is noted already stays as it is. */
const noteVersion = (dialect: DialectName, { version }: TableNames, applied: number): string => {
  const now =
    dialect === "pg"
      ? "now()"
      : dialect === "mysql"
        ? "UTC_TIMESTAMP(6)"
        : "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"
  return `INSERT INTO ${version} (version, applied_at) SELECT ${applied}, ${now} WHERE NOT EXISTS (SELECT 1 FROM ${version} WHERE version = ${applied})`
}

/** All statements to the newest version, for migration tools. Each may be run again. */
export const migrationStatements = (dialect: DialectName, table: string): ReadonlyArray<string> => {
  const names = tableNames(table)
  return [
    createVersionTable(dialect, names),
    ...migrations.flatMap(({ version, statements }) => [
      ...statements(dialect, table),
      noteVersion(dialect, names, version)
    ])
  ]
}

/** The names of everything that version 1 consists of, where an index is an object of the database. */
const objectsOfVersion1 = (dialect: DialectName, names: TableNames): ReadonlyArray<string> => {
  const tables = [names.table, names.bucket, names.node]
  if (dialect === "mysql") return tables
  const schema = names.table.slice(0, names.table.length - names.unqualified.length)
  const indexes = [names.pendingIndex, names.bucketIndex, names.terminalIndex, names.deadIndex].map(
    (index) => schema + index
  )
  return [...tables, ...indexes, ...(dialect === "pg" ? [names.sequence] : [])]
}

const quoted = (name: string): string => `'${name}'`
const unqualified = (name: string): string => name.slice(name.lastIndexOf(".") + 1)

/** Counts the objects that exist. The names are checked identifiers. */
const countObjects = (dialect: DialectName, objects: ReadonlyArray<string>): string => {
  switch (dialect) {
    case "pg":
      return `SELECT count(*) AS n FROM unnest(ARRAY[${objects.map(quoted).join(", ")}]) AS o(name) WHERE to_regclass(o.name) IS NOT NULL`
    case "mysql": {
      const [first = ""] = objects
      const schema = first.includes(".") ? quoted(first.slice(0, first.indexOf("."))) : "DATABASE()"
      return `SELECT COUNT(*) AS n FROM information_schema.tables WHERE table_schema = ${schema} AND table_name IN (${objects.map((name) => quoted(unqualified(name))).join(", ")})`
    }
    case "sqlite":
      return `SELECT COUNT(*) AS n FROM sqlite_master WHERE name IN (${objects.map((name) => quoted(unqualified(name))).join(", ")})`
  }
}

type Connection = SqlConnection.Connection
type Step<A = void> = Effect.Effect<A, SqlError.SqlError>

const rowsOf = (connection: Connection, text: string): Step<ReadonlyArray<Record<string, unknown>>> =>
  connection.executeUnprepared(text, [], undefined) as Step<ReadonlyArray<Record<string, unknown>>>

const runAll = (connection: Connection, texts: ReadonlyArray<string>): Step =>
  Effect.forEach(texts, (text) => rowsOf(connection, text), { discard: true })

const numberOf = (rows: ReadonlyArray<Record<string, unknown>>): number => Number(Object.values(rows[0] ?? {})[0] ?? 0)

/** Runs the versions that the database lacks. Tables of the first version, which had no version table, are only noted. */
const migrateOn = Effect.fnUntraced(function* (
  connection: Connection,
  dialect: DialectName,
  table: string,
  list: ReadonlyArray<Migration>
): Effect.fn.Return<void, SqlError.SqlError> {
  const names = tableNames(table)
  yield* runAll(connection, [createVersionTable(dialect, names)])
  const current = numberOf(yield* rowsOf(connection, `SELECT MAX(version) AS n FROM ${names.version}`))
  const objects = objectsOfVersion1(dialect, names)
  for (const { version, statements } of list.filter((migration) => migration.version > current)) {
    const isThere =
      version === 1 && numberOf(yield* rowsOf(connection, countObjects(dialect, objects))) === objects.length
    if (!isThere) yield* runAll(connection, statements(dialect, table))
    yield* runAll(connection, [noteVersion(dialect, names, version)])
  }
})

/** One migration at a time per database, and no statement waits for a lock for longer than `lockMillis`. */
const locked = (connection: Connection, dialect: DialectName, migrating: Step): Step => {
  const run = (...texts: ReadonlyArray<string>) => runAll(connection, texts)
  const inTransaction = (begin: Step) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.andThen(
        begin,
        Effect.matchCauseEffect(restore(migrating), {
          onSuccess: () => run("COMMIT"),
          onFailure: (cause) => Effect.andThen(Effect.ignore(run("ROLLBACK")), Effect.failCause(cause))
        })
      )
    )
  switch (dialect) {
    case "sqlite":
      return inTransaction(run("BEGIN IMMEDIATE"))
    case "pg":
      return inTransaction(
        run(
          "BEGIN",
          `SET LOCAL lock_timeout = ${lockMillis}`,
          "SELECT pg_advisory_xact_lock(hashtext('eventbus outbox migration'))"
        ).pipe(Effect.tapError(() => Effect.ignore(run("ROLLBACK"))))
      )
    case "mysql": {
      const name = "CONCAT('eventbus outbox ', MD5(DATABASE()))"
      return Effect.acquireUseRelease(
        Effect.tap(rowsOf(connection, `SELECT GET_LOCK(${name}, ${lockMillis / 1000}) AS n`), (rows) =>
          numberOf(rows) === 1 ? Effect.void : Effect.fail(lockTimeout())
        ),
        () => Effect.andThen(run(`SET SESSION lock_wait_timeout = ${lockMillis / 1000}`), migrating),
        () => Effect.ignore(run("SET SESSION lock_wait_timeout = DEFAULT", `DO RELEASE_LOCK(${name})`))
      )
    }
  }
}

const lockTimeout = (): SqlError.SqlError =>
  new SqlError.SqlError({
    reason: new SqlError.LockTimeoutError({
      cause: new Error("another process migrates the outbox tables of this database"),
      message: `The lock of the migration was not free within ${lockMillis} ms`,
      operation: "migrate"
    })
  })

/** A lock that was not free in time is tried again: other processes wait in between instead of behind this one. */
const lockRetries = Schedule.spaced("500 millis").pipe(Schedule.upTo({ times: 10 }))

/** Brings the tables to the newest version. Inside the caller's transaction it uses that, without a lock of its own. */
export const migrateTables = (
  sql: SqlClient.SqlClient,
  dialect: DialectName,
  table: string,
  list: ReadonlyArray<Migration> = migrations
): Step =>
  Effect.flatMap(Effect.serviceOption(sql.transactionService), (transaction) => {
    if (transaction._tag === "Some") return migrateOn(transaction.value[0], dialect, table, list)
    const once = Effect.scoped(
      Effect.flatMap(sql.reserve, (connection) =>
        locked(connection, dialect, migrateOn(connection, dialect, table, list))
      )
    )
    return Effect.retry(once, { schedule: lockRetries, while: ({ reason }) => reason._tag === "LockTimeoutError" })
  })
