/**
 * The tables of the outbox: creates them and checks them.
 *
 * The columns are the seed's (outbox seed §4.1), and beside them `seq` (the insertion order), `content_type`, `occurred_at` and `bucket`.
 * `docs/decisions/outbox-table.md` says why pending rows have partial indexes.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { checkTableName } from "./internal/base/identifier.ts"
import { type DialectName, dialectOf } from "./internal/store/dialect.ts"
import { migrateTables, migrationStatements } from "./internal/store/migrations.ts"
import { defaultTable } from "./internal/store/tableNames.ts"
import { type InvalidIdentifier, OutboxStoreError, SchemaMismatch } from "./OutboxError.ts"

/** Settings of all functions here. */
export interface SchemaOptions {
  /** The event table, optionally qualified by a schema. Bucket and node tables derive their names from it. Default `outbox_event`. */
  readonly table?: string
}

/** Only an absent name means the default one. */
const tableOf = (options: SchemaOptions | undefined): string =>
  options?.table === undefined ? defaultTable : options.table

/** The columns that the outbox reads and writes. */
const requiredColumns = [
  "seq event_id event_type aggregate_type aggregate_id tenant_id payload content_type headers status attempts",
  "available_at created_at occurred_at done_at last_error locked_by locked_at bucket"
].flatMap((line) => line.split(" "))

/**
 * The migration as single statements, for teams that run migrations with a tool of their own. Every statement may be run again. Fails on
 * an illegal table name.
 */
export const statements = (
  dialect: DialectName,
  options: SchemaOptions = {}
): Effect.Effect<ReadonlyArray<string>, InvalidIdentifier> =>
  Effect.map(checkTableName(tableOf(options)), (table) => migrationStatements(dialect, table))

/**
 * Brings the tables to the newest version, on a live database too. Several processes may run it at the same time: one of them migrates, and
 * no statement waits for a lock for longer than 2 seconds before it is tried again. Where nothing is missing, it takes no lock on the event
 * table. Nodes of older versions go on beside. Fails with `OutboxStoreError` when the database refuses, or the lock stays taken.
 */
export const migrate: (
  options?: SchemaOptions
) => Effect.Effect<void, InvalidIdentifier | OutboxStoreError, SqlClient.SqlClient> = Effect.fnUntraced(
  function* (options) {
    const sql = yield* SqlClient.SqlClient
    const table = yield* checkTableName(tableOf(options))
    yield* Effect.mapError(
      migrateTables(sql, dialectOf(sql).name, table),
      (cause) => new OutboxStoreError({ operation: "migrate", retryable: cause.isRetryable, cause })
    )
  }
)

/** Fails with `SchemaMismatch`, naming what is missing, when the table is missing or lacks a column. */
export const verify: (
  options?: SchemaOptions
) => Effect.Effect<void, InvalidIdentifier | OutboxStoreError | SchemaMismatch, SqlClient.SqlClient> =
  Effect.fnUntraced(function* (options) {
    const sql = yield* SqlClient.SqlClient
    const table = yield* checkTableName(tableOf(options))
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
