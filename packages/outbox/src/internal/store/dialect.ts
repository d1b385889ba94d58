/** SQL that differs between the databases. Statements are written once, in terms of a `Dialect`. */
import type * as SqlClient from "effect/sql/SqlClient"

/** The family of databases: PostgreSQL, MySQL 8 and MariaDB, SQLite. */
export type DialectName = "pg" | "mysql" | "sqlite"

/** SQL fragments of one family of databases. */
export interface Dialect {
  /** The family of databases. */
  readonly name: DialectName
  /** The database's own time as a value of the time columns. Only this time decides availability and expiry (ruling 44). */
  readonly now: string
  /** The nth parameter, counted from 1. */
  readonly param: (n: number) => string
  /** `time` plus a number of milliseconds. */
  readonly plusMillis: (time: string, millis: string) => string
  /** `time` minus a number of milliseconds. */
  readonly minusMillis: (time: string, millis: string) => string
  /** A time column as whole microseconds since the epoch. */
  readonly micros: (column: string) => string
  /** Epoch milliseconds as a value of the time columns. */
  readonly fromMillis: (millis: string) => string
  /** The clause that a claim appends to its SELECT, so that two claimers never get the same row. */
  readonly skipLocked: string
}

const pg: Dialect = {
  name: "pg",
  now: "statement_timestamp()",
  param: (n) => `$${n}`,
  plusMillis: (time, millis) => `${time} + ${millis}::float8 * interval '1 millisecond'`,
  minusMillis: (time, millis) => `${time} - ${millis}::float8 * interval '1 millisecond'`,
  // date_part returns a double, which readers round. extract returns a decimal and is several times slower.
  micros: (column) => `(date_part('epoch', ${column}) * 1000000)`,
  fromMillis: (millis) => `to_timestamp(${millis}::float8 / 1000)`,
  skipLocked: "FOR UPDATE SKIP LOCKED"
}

const mysql: Dialect = {
  name: "mysql",
  now: "UTC_TIMESTAMP(6)",
  param: () => "?",
  plusMillis: (time, millis) => `TIMESTAMPADD(MICROSECOND, CAST(1000 * ${millis} AS SIGNED), ${time})`,
  minusMillis: (time, millis) => `TIMESTAMPADD(MICROSECOND, CAST(-1000 * ${millis} AS SIGNED), ${time})`,
  micros: (column) => `TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', ${column})`,
  fromMillis: (millis) => `TIMESTAMPADD(MICROSECOND, CAST(1000 * ${millis} AS SIGNED), '1970-01-01 00:00:00')`,
  skipLocked: "FOR UPDATE SKIP LOCKED"
}

/** SQLite has no time type: times are whole microseconds since the epoch. */
const sqlite = (now: string): Dialect => ({
  name: "sqlite",
  now,
  param: () => "?",
  plusMillis: (time, millis) => `${time} + CAST(1000 * ${millis} AS INTEGER)`,
  minusMillis: (time, millis) => `${time} - CAST(1000 * ${millis} AS INTEGER)`,
  micros: (column) => column,
  fromMillis: (millis) => `CAST(ROUND(1000 * ${millis}) AS INTEGER)`,
  skipLocked: ""
})

/** The dialect of a client. The `NodeSqlite` client of this package brings its clock as a SQL function; any other SQLite client uses the system's time. */
export const dialectOf = (sql: SqlClient.SqlClient): Dialect =>
  sql.onDialectOrElse({
    mysql: () => mysql,
    sqlite: () =>
      sqlite(
        sql.driver === "node-sqlite" ? "(SELECT outbox_now_micros())" : "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"
      ),
    orElse: () => pg
  })

/** The dialect of clients that are not Effect's. Their SQLite has no transactions that a database could tell from single statements. */
export const foreignDialects = { pg, mysql } as const satisfies { readonly [N in DialectName]?: Dialect }

/** The number of rows that a change affected: `rowCount` (PostgreSQL), `affectedRows` (MySQL), `changes` (SQLite). */
export const affectedRows = (raw: unknown): number => {
  const result = raw as {
    readonly rowCount?: number
    readonly affectedRows?: number
    readonly changes?: number | bigint
  }
  return Number(result.rowCount ?? result.affectedRows ?? result.changes ?? 0)
}
