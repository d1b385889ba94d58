/**
 * The tables of the outbox and the statements that make them: idempotent, one list per database.
 *
 * The columns are the seed's, with `seq` (the monotonic insertion order), `content_type`, `occurred_at` and `bucket` beside them.
 * `docs/decisions/outbox-table.md` says why pending rows have a partial index.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { checkTableName } from "./internal/base/identifier.ts"
import { type DialectName, dialectOf } from "./internal/store/dialect.ts"
import { tableNames } from "./internal/store/tableNames.ts"
import { type InvalidIdentifier, OutboxStoreError, SchemaMismatch } from "./OutboxError.ts"

export const defaultTable = "outbox_event"
export const defaultInboxTable = "outbox_inbox"

export interface SchemaOptions {
  /** Default `outbox_event`. May be qualified by a schema. Bucket and node tables derive their names from it. */
  readonly table?: string
}

/** What the relay reads and writes; a table that lacks one of them is refused at start. */
const requiredColumns = [
  "seq event_id event_type aggregate_type aggregate_id tenant_id payload content_type headers status attempts",
  "available_at created_at occurred_at done_at last_error locked_by locked_at bucket"
].flatMap((line) => line.split(" "))

/**
 * The migration as single statements, for teams that run their migrations with a tool of their own.
 * Every statement may be run again.
 */
export const statements = (
  dialect: DialectName,
  options: SchemaOptions = {}
): Effect.Effect<ReadonlyArray<string>, InvalidIdentifier> =>
  Effect.map(checkTableName(options.table ?? defaultTable, "table name"), (table) =>
    dialect === "pg" ? pgStatements(table) : dialect === "mysql" ? mysqlStatements(table) : sqliteStatements(table)
  )

/** Creates the tables and indexes that are not there yet in the database of the `SqlClient`. */
export const migrate: (
  options?: SchemaOptions
) => Effect.Effect<void, InvalidIdentifier | OutboxStoreError, SqlClient.SqlClient> = Effect.fnUntraced(
  function* (options) {
    const sql = yield* SqlClient.SqlClient
    for (const text of yield* statements(dialectOf(sql).name, options)) {
      yield* sql
        .unsafe(text)
        .unprepared.pipe(
          Effect.mapError(
            (cause) => new OutboxStoreError({ operation: "migrate", retryable: cause.isRetryable, cause })
          )
        )
    }
  }
)

/** Fails with `SchemaMismatch`, naming what is missing, when the table is not there or lacks a column. */
export const verify: (
  options?: SchemaOptions
) => Effect.Effect<void, InvalidIdentifier | OutboxStoreError | SchemaMismatch, SqlClient.SqlClient> =
  Effect.fnUntraced(function* (options) {
    const sql = yield* SqlClient.SqlClient
    const table = yield* checkTableName(options?.table ?? defaultTable, "table name")
    const probe = (what: string) => sql.unsafe(`SELECT ${what} FROM ${table} WHERE 1 = 0`)
    const all = yield* Effect.result(probe(requiredColumns.join(", ")))
    if (all._tag === "Success") return
    if (all.failure.isRetryable) {
      return yield* new OutboxStoreError({ operation: "verify schema", retryable: true, cause: all.failure })
    }
    const exists = yield* Effect.result(probe("1"))
    if (exists._tag === "Failure") return yield* new SchemaMismatch({ table, missing: ["the table itself"] })
    const missing = yield* Effect.filter(requiredColumns, (column) =>
      Effect.map(Effect.result(probe(column)), (result) => result._tag === "Failure")
    )
    return yield* new SchemaMismatch({ table, missing })
  })

const pgStatements = (table: string): ReadonlyArray<string> => {
  const names = tableNames(table)
  return [
    `CREATE SEQUENCE IF NOT EXISTS ${names.sequence}`,
    `CREATE TABLE IF NOT EXISTS ${table} (
  seq bigint NOT NULL DEFAULT nextval('${names.sequence}'),
  event_id varchar(36) COLLATE "C" PRIMARY KEY,
  event_type varchar(128) NOT NULL,
  aggregate_type varchar(64),
  aggregate_id varchar(128),
  tenant_id varchar(64),
  payload bytea NOT NULL,
  content_type varchar(128) NOT NULL DEFAULT 'application/json',
  headers text,
  status smallint NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  available_at timestamptz(6) NOT NULL DEFAULT statement_timestamp(),
  created_at timestamptz(6) NOT NULL DEFAULT statement_timestamp(),
  occurred_at timestamptz(6) NOT NULL DEFAULT statement_timestamp(),
  done_at timestamptz(6),
  last_error text,
  locked_by varchar(128),
  locked_at timestamptz(6),
  bucket smallint NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05)`,
    `CREATE INDEX IF NOT EXISTS ${names.pendingIndex} ON ${table} (available_at, seq) WHERE status IN (0, 2)`,
    `CREATE INDEX IF NOT EXISTS ${names.bucketIndex} ON ${table} (bucket, seq) WHERE status IN (0, 2)`,
    `CREATE INDEX IF NOT EXISTS ${names.terminalIndex} ON ${table} (COALESCE(done_at, created_at)) WHERE status IN (1, 3)`,
    `CREATE INDEX IF NOT EXISTS ${names.deadIndex} ON ${table} (seq) WHERE status = 3`,
    `CREATE TABLE IF NOT EXISTS ${names.bucket} (
  bucket smallint PRIMARY KEY, owner varchar(128), epoch bigint NOT NULL DEFAULT 0, expires_at timestamptz(6)
)`,
    `CREATE TABLE IF NOT EXISTS ${names.node} (owner varchar(128) PRIMARY KEY, expires_at timestamptz(6) NOT NULL)`
  ]
}

const mysqlStatements = (table: string): ReadonlyArray<string> => {
  const names = tableNames(table)
  const text = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
  return [
    // MySQL has no partial index. `pending_at` is NULL once a row is terminal, and `available_at <= now` never reads those entries.
    `CREATE TABLE IF NOT EXISTS ${table} (
  seq bigint NOT NULL AUTO_INCREMENT,
  event_id varchar(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  event_type varchar(128) NOT NULL,
  aggregate_type varchar(64),
  aggregate_id varchar(128),
  tenant_id varchar(64),
  payload longblob NOT NULL,
  content_type varchar(128) NOT NULL DEFAULT 'application/json',
  headers mediumtext,
  status tinyint NOT NULL DEFAULT 0,
  attempts int NOT NULL DEFAULT 0,
  available_at datetime(6) NOT NULL,
  created_at datetime(6) NOT NULL,
  occurred_at datetime(6) NOT NULL,
  done_at datetime(6),
  last_error text,
  locked_by varchar(128),
  locked_at datetime(6),
  bucket smallint NOT NULL DEFAULT 0,
  pending_at datetime(6) GENERATED ALWAYS AS (CASE WHEN status IN (0, 2) THEN available_at END) VIRTUAL,
  pending_bucket smallint GENERATED ALWAYS AS (CASE WHEN status IN (0, 2) THEN bucket END) VIRTUAL,
  terminal_at datetime(6) GENERATED ALWAYS AS (CASE WHEN status IN (1, 3) THEN COALESCE(done_at, created_at) END) VIRTUAL,
  dead_at datetime(6) GENERATED ALWAYS AS (CASE WHEN status = 3 THEN COALESCE(done_at, created_at) END) VIRTUAL,
  UNIQUE KEY ${names.seqIndex} (seq),
  KEY ${names.pendingIndex} (pending_at, seq),
  KEY ${names.bucketIndex} (pending_bucket, seq),
  KEY ${names.terminalIndex} (terminal_at),
  KEY ${names.deadIndex} (dead_at)
) ENGINE = InnoDB ${text}`,
    `CREATE TABLE IF NOT EXISTS ${names.bucket} (
  bucket smallint PRIMARY KEY, owner varchar(128), epoch bigint NOT NULL DEFAULT 0, expires_at datetime(6)
) ENGINE = InnoDB ${text}`,
    `CREATE TABLE IF NOT EXISTS ${names.node} (owner varchar(128) PRIMARY KEY, expires_at datetime(6) NOT NULL) ENGINE = InnoDB ${text}`
  ]
}

const sqliteStatements = (table: string): ReadonlyArray<string> => {
  const names = tableNames(table)
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT NOT NULL UNIQUE,
  event_type TEXT NOT NULL,
  aggregate_type TEXT,
  aggregate_id TEXT,
  tenant_id TEXT,
  payload BLOB NOT NULL,
  content_type TEXT NOT NULL DEFAULT 'application/json',
  headers TEXT,
  status INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  available_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  occurred_at INTEGER NOT NULL,
  done_at INTEGER,
  last_error TEXT,
  locked_by TEXT,
  locked_at INTEGER,
  bucket INTEGER NOT NULL DEFAULT 0
)`,
    `CREATE INDEX IF NOT EXISTS ${names.pendingIndex} ON ${names.unqualified} (available_at, seq) WHERE status IN (0, 2)`,
    `CREATE INDEX IF NOT EXISTS ${names.bucketIndex} ON ${names.unqualified} (bucket, seq) WHERE status IN (0, 2)`,
    `CREATE INDEX IF NOT EXISTS ${names.terminalIndex} ON ${names.unqualified} (COALESCE(done_at, created_at)) WHERE status IN (1, 3)`,
    `CREATE INDEX IF NOT EXISTS ${names.deadIndex} ON ${names.unqualified} (seq) WHERE status = 3`,
    `CREATE TABLE IF NOT EXISTS ${names.bucket} (bucket INTEGER PRIMARY KEY, owner TEXT, epoch INTEGER NOT NULL DEFAULT 0, expires_at INTEGER)`,
    `CREATE TABLE IF NOT EXISTS ${names.node} (owner TEXT PRIMARY KEY, expires_at INTEGER NOT NULL)`
  ]
}
