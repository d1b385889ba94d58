/**
 * The `IdempotencyStore` of `@eventbus/core` in a table of PostgreSQL, MySQL 8 / MariaDB or SQLite.
 *
 * Every call is one to three statements, outside the handler's transaction. When the handler writes to the same database, `Inbox` is
 * stronger, because it commits with the handler. The database's time decides which keys have expired.
 *
 * The store owns the table of keys. A key is stored as its SHA-256, so it may have any length and any characters. The layer deletes
 * expired keys in the background for as long as it is open.
 */
import { createHash } from "node:crypto"
import { IdempotencyStore, Kinds } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlError from "effect/sql/SqlError"
import { failureOfValue } from "./internal/base/failureText.ts"
import { checkTableName } from "./internal/base/identifier.ts"
import { logWarning } from "./internal/base/log.ts"
import { problemsOf, refuse } from "./internal/base/options.ts"
import { makeDeliveryTools } from "./internal/delivery/deliveryTools.ts"
import { affectedRows, type Dialect, dialectOf } from "./internal/store/dialect.ts"
import { type InvalidIdentifier, OutboxStoreError } from "./OutboxError.ts"
import { purge as range } from "./OutboxRanges.ts"

/** The table of all functions here. */
export interface TableOptions {
  /** The table of keys, optionally qualified by a schema. Default `eventbus_idempotency`. */
  readonly table?: string
}

/** Settings of `layer`. */
export interface Options extends TableOptions {
  /** Time between two deletions of expired keys, above 0. Default 5 minutes. */
  readonly purgeInterval?: Duration.Input
}

const defaultTable = "eventbus_idempotency"
const purgeLimit = 1_000

/** Creates the table when it is missing. May be run again. Fails on an illegal table name, or when the database refuses. */
export const migrate = Effect.fnUntraced(function* (
  options: TableOptions = {}
): Effect.fn.Return<void, InvalidIdentifier | OutboxStoreError, SqlClient.SqlClient> {
  refuse("SqlIdempotencyStore", problemsOf(options, { table: Kinds.string }))
  const sql = yield* SqlClient.SqlClient
  const table = yield* checkTableName(options.table ?? defaultTable)
  const index = `idx_${table.slice(table.lastIndexOf(".") + 1)}_expiry`
  const onIndex = `CREATE INDEX IF NOT EXISTS ${index} ON ${table} (expires_at)`
  // MySQL 8 has no CREATE INDEX IF NOT EXISTS, so there the index is part of the table.
  const [ascii, time, inTable, after] = sql.onDialectOrElse({
    mysql: () => ["CHARACTER SET ascii COLLATE ascii_bin", "datetime(6)", `, INDEX ${index} (expires_at)`, []] as const,
    sqlite: () => ["", "INTEGER", "", [onIndex]] as const,
    orElse: () => ["", "timestamptz(6)", "", [onIndex]] as const
  })
  const create = `CREATE TABLE IF NOT EXISTS ${table} (
    key_hash char(64) ${ascii} NOT NULL PRIMARY KEY, owner varchar(36) ${ascii}, expires_at ${time} NOT NULL${inTable}
  )`
  yield* Effect.forEach([create, ...after], (text) => sql.unsafe(text).unprepared, { discard: true }).pipe(
    Effect.mapError(
      (cause) => new OutboxStoreError({ operation: "migrate idempotency", retryable: cause.isRetryable, cause })
    )
  )
})

/** The store without the deletion of expired keys: call `purge` now and then. Fails on an illegal table name. */
export const make: (
  options?: TableOptions
) => Effect.Effect<IdempotencyStore.IdempotencyStore["Service"], InvalidIdentifier, SqlClient.SqlClient> =
  Effect.fnUntraced(function* (options = {}) {
    refuse("SqlIdempotencyStore", problemsOf(options, { table: Kinds.string }))
    const sql = yield* SqlClient.SqlClient
    const text = statements(dialectOf(sql), yield* checkTableName(options.table ?? defaultTable))
    const changed = (statement: string, ...params: ReadonlyArray<string>) =>
      Effect.map(retryDeadlocks(sql.unsafe(statement, params).raw), (raw) => affectedRows(raw) > 0)

    const stateOf = Effect.fnUntraced(function* (
      hash: string
    ): Effect.fn.Return<IdempotencyStore.KeyState, SqlError.SqlError> {
      const [row] = yield* sql.unsafe<Row>(text.read, [hash]).withoutTransform
      const leftMillis = Number(row?.left_micros ?? 0) / 1000
      if (row === undefined || leftMillis <= 0) return { _tag: "Free" }
      if (row.owner === null) return { _tag: "Done" }
      return { _tag: "InProgress", untilMillis: (yield* Clock.currentTimeMillis) + leftMillis }
    })

    const begin = Effect.fnUntraced(function* (key: string, lease: string) {
      const id = crypto.randomUUID()
      const hash = hashOf(key)
      while (true) {
        const isNew = yield* changed(text.insert(lease), hash, id)
        if (isNew || (yield* changed(text.takeOver(lease), id, hash))) return started(key, id)
        const state = yield* stateOf(hash)
        // The key was deleted or has expired since the statement before, so it is free now.
        if (state._tag !== "Free") return state
      }
    })

    return IdempotencyStore.IdempotencyStore.of({
      name: "sql",
      lookUp: (key) => Effect.mapError(stateOf(hashOf(key)), failed("look up")),
      begin: (key, { lease }) => Effect.mapError(begin(key, millis(lease)), failed("begin")),
      complete: ({ key, id }, { retention }) =>
        Effect.mapError(changed(text.complete(millis(retention)), hashOf(key), id), failed("complete")),
      abandon: ({ key, id }) => Effect.mapError(changed(text.abandon, hashOf(key), id), failed("abandon")),
      renew: ({ key, id }, { lease }) =>
        Effect.mapError(changed(text.renew(millis(lease)), hashOf(key), id), failed("renew"))
    })
  })

/** Deletes at most `limit` (default 1,000) expired keys; returns how many. */
export const purge = Effect.fnUntraced(function* (
  options: TableOptions & { readonly limit?: number } = {}
): Effect.fn.Return<number, InvalidIdentifier | OutboxStoreError, SqlClient.SqlClient> {
  refuse("SqlIdempotencyStore", problemsOf(options, { table: Kinds.string, limit: range.limit }))
  const { limit = purgeLimit } = options
  const sql = yield* SqlClient.SqlClient
  const table = yield* checkTableName(options.table ?? defaultTable)
  const { delete: text } = statements(dialectOf(sql), table)
  return yield* retryDeadlocks(sql.unsafe(text(limit)).raw).pipe(
    Effect.map(affectedRows),
    Effect.mapError(
      (cause) => new OutboxStoreError({ operation: "purge idempotency", retryable: cause.isRetryable, cause })
    )
  )
})

/** The store on the table that `migrate` created; expired keys are deleted in the background. */
export const layer = (
  options: Options = {}
): Layer.Layer<IdempotencyStore.IdempotencyStore, InvalidIdentifier, SqlClient.SqlClient> =>
  Layer.effect(
    IdempotencyStore.IdempotencyStore,
    Effect.gen(function* () {
      refuse("SqlIdempotencyStore", problemsOf(options, { table: Kinds.string, purgeInterval: range.purgeInterval }))
      const store = yield* make(options)
      const tools = yield* makeDeliveryTools({ names: {} })
      yield* Effect.forkScoped(tools.supervise("purge of idempotency keys", yield* purging(options)))
      return store
    })
  )

const purging = (options: Options) =>
  Effect.map(SqlClient.SqlClient, (sql) =>
    purge(options).pipe(
      Effect.repeat({ while: (purged) => purged >= purgeLimit }),
      Effect.catch((error) =>
        logWarning(`outbox: expired idempotency keys could not be deleted: ${failureOfValue(error).summary}`)
      ),
      Effect.repeat(Schedule.spaced(options.purgeInterval ?? "5 minutes")),
      Effect.provideService(SqlClient.SqlClient, sql)
    )
  )

/** Claims and the purge lock a key and its index in different orders. The victim of a deadlock has changed nothing, and tries again. */
const retryDeadlocks = <A>(statement: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A, SqlError.SqlError> =>
  Effect.retry(statement, {
    schedule: Schedule.jittered(Schedule.exponential("5 millis")),
    times: 8,
    while: ({ reason }) => reason._tag === "DeadlockError" || reason._tag === "SerializationError"
  })

interface Row {
  readonly owner: string | null
  readonly left_micros: number | string
}

/** A row without an owner means done. An expired row counts as no row. */
const statements = (dialect: Dialect, table: string) => {
  const { now, param } = dialect
  const from = (time: string) => dialect.plusMillis(now, time)
  const [first, second] = [param(1), param(2)]
  const held = `key_hash = ${first} AND owner = ${second} AND expires_at > ${now}`
  const [verb, rest] = dialect.name === "mysql" ? ["INSERT IGNORE", ""] : ["INSERT", "ON CONFLICT DO NOTHING"]
  return {
    insert: (lease: string) =>
      `${verb} INTO ${table} (key_hash, owner, expires_at) VALUES (${first}, ${second}, ${from(lease)}) ${rest}`,
    takeOver: (lease: string) =>
      `UPDATE ${table} SET owner = ${first}, expires_at = ${from(lease)} WHERE key_hash = ${second} AND expires_at <= ${now}`,
    read: `SELECT owner, ${dialect.micros("expires_at")} - ${dialect.micros(now)} AS left_micros FROM ${table} WHERE key_hash = ${first}`,
    complete: (retention: string) => `UPDATE ${table} SET owner = NULL, expires_at = ${from(retention)} WHERE ${held}`,
    abandon: `UPDATE ${table} SET expires_at = ${now} WHERE ${held}`,
    renew: (lease: string) => `UPDATE ${table} SET expires_at = ${from(lease)} WHERE ${held}`,
    delete: (limit: number) => {
      const expired = `expires_at <= ${now}`
      // The outer condition decides: a key of the list may have been claimed again before it is locked.
      return dialect.name === "mysql"
        ? `DELETE FROM ${table} WHERE ${expired} LIMIT ${limit}`
        : `DELETE FROM ${table} WHERE ${expired} AND key_hash IN (SELECT key_hash FROM ${table} WHERE ${expired} LIMIT ${limit})`
    }
  }
}

const started = (key: string, id: string): IdempotencyStore.Claim => ({ _tag: "Started", token: { key, id } })

const hashOf = (key: string): string => createHash("sha256").update(key).digest("hex")

const millis = (duration: Duration.Duration): string => String(Duration.toMillis(duration))

const failed = (operation: IdempotencyStore.IdempotencyStoreError["operation"]) => (cause: SqlError.SqlError) =>
  new IdempotencyStore.IdempotencyStoreError({ store: "sql", operation, retryable: cause.isRetryable, cause })
