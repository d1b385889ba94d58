/** The statements that create the outbox tables, one list per database. Each may be run again. */
import type { DialectName } from "./dialect.ts"
import { tableNames } from "./tableNames.ts"

/** The statements for a checked table name. */
export const createStatements = (dialect: DialectName, table: string): ReadonlyArray<string> =>
  dialect === "pg" ? pgStatements(table) : dialect === "mysql" ? mysqlStatements(table) : sqliteStatements(table)

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
    // MySQL has no partial index. Generated columns take its place: `pending_at` is NULL once a row is terminal, and a comparison with
    // it never reads those entries.
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
