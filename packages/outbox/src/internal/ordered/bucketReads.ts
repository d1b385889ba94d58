/**
 * Reads for ordered delivery: the pending rows of buckets in insertion order. A read never goes past a row that a slow transaction may
 * still commit (ruling 46). The limit is the stable sequence number, as a Kafka consumer stops at the last stable offset.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlError from "effect/sql/SqlError"
import type { JsonCodec } from "../../JsonCodec.ts"
import type { OutboxStoreError } from "../../OutboxError.ts"
import { storeError } from "../store/context.ts"
import type { Dialect } from "../store/dialect.ts"
import { decodeRow, eventColumns, type PolledEvent } from "../store/rows.ts"
import type { TableNames } from "../store/tableNames.ts"

/** Where to read on in one bucket: behind this sequence number. */
export interface BucketCursor {
  readonly bucket: number
  readonly afterSeq: number
}

/** Up to `seq`, every row is committed or will never be. */
export interface StableSeq {
  readonly seq: number
  /** Higher numbers were given out to transactions that have not ended. */
  readonly hasOpenTransactions: boolean
}

export interface BucketReads {
  readonly stableSeq: Effect.Effect<StableSeq, OutboxStoreError>
  /**
   * At most `limit` pending rows per bucket in insertion order, due or not, up to the stable sequence number. `truncated`: an
   * uncommitted row ended a bucket's rows early, and more will follow soon.
   */
  readonly read: (
    cursors: ReadonlyArray<BucketCursor>,
    stableSeq: number,
    limit: number
  ) => Effect.Effect<{ readonly rows: ReadonlyArray<PolledEvent>; readonly truncated: boolean }, OutboxStoreError>
}

/** The table and how its rows are read. */
interface Source {
  readonly sql: SqlClient.SqlClient
  readonly dialect: Dialect
  readonly names: TableNames
  readonly codec: JsonCodec
}

type Row = Record<string, unknown>

const findStableSeq = "find the stable sequence number"
const readBuckets = "read buckets"

const asStoreError = (operation: string) => Effect.mapError((cause: SqlError.SqlError) => storeError(operation)(cause))

/** The reads for the client's database. */
export const makeBucketReads = (dialect: Dialect, names: TableNames, codec: JsonCodec) =>
  Effect.map(SqlClient.SqlClient, (sql): BucketReads => {
    const source = { sql, dialect, names, codec }
    switch (dialect.name) {
      case "pg":
        return pgReads(source)
      case "mysql":
        return mysqlReads(source)
      case "sqlite":
        return sqliteReads(source)
    }
  })

/**
 * PostgreSQL needs a barrier. It notes the highest number given out so far, then the transactions that hold a writer's lock on the
 * table. A transaction takes that lock before its row takes its number, and keeps it until it ends. Once all noted transactions have
 * ended, all numbers up to the noted one are stable. Transactions that do not write to the table delay nothing.
 */
const pgReads = ({ sql, dialect, names, codec }: Source): BucketReads => {
  let confirmed = 0
  let barrier: { readonly seq: number; readonly writers: ReadonlySet<string> } | undefined

  // The lateral join depends on the number, so the locks are read after it.
  const numberAndWriters = sql.unsafe<Row>(
    `SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END AS seq, w.writers FROM ${names.sequence} s CROSS JOIN LATERAL (
      SELECT array_agg(virtualtransaction) AS writers FROM pg_locks WHERE s.last_value >= 0 AND locktype = 'relation'
        AND relation = '${names.table}'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND mode = 'RowExclusiveLock' AND granted AND pid <> pg_backend_pid()
    ) w`
  ).withoutTransform

  const stableSeq = Effect.map(numberAndWriters, ([row]): StableSeq => {
    const seq = barrier?.seq ?? Number(row?.seq ?? 0)
    if (seq <= confirmed) return { seq: confirmed, hasOpenTransactions: false }
    const now: ReadonlyArray<string> = Array.isArray(row?.writers) ? row.writers.map(String) : []
    const before = barrier?.writers ?? new Set(now)
    const stillOpen = new Set(now.filter((transaction) => before.has(transaction)))
    barrier = stillOpen.size === 0 ? undefined : { seq, writers: stillOpen }
    if (barrier === undefined) confirmed = seq
    return { seq: confirmed, hasOpenTransactions: barrier !== undefined }
  }).pipe(asStoreError(findStableSeq))

  const text = `SELECT ${eventColumns(dialect, "e.")} FROM unnest($1::int8[], $2::int8[]) AS c(bucket, after_seq)
    CROSS JOIN LATERAL (
      SELECT t.ctid, t.* FROM ${names.table} t WHERE t.bucket = c.bucket AND t.status IN (0, 2) AND t.seq > c.after_seq AND t.seq <= $3
      ORDER BY t.seq LIMIT $4
    ) e`
  return {
    stableSeq,
    read: (cursors, upTo, limit) =>
      sql.unsafe(text, [cursors.map((c) => c.bucket), cursors.map((c) => c.afterSeq), upTo, limit]).values.pipe(
        Effect.map((rows) => ({ rows: rows.map((row) => decodeRow(row, codec)), truncated: false })),
        asStoreError(readBuckets)
      )
  }
}

/**
 * SQLite has one writer at a time, so rows become visible in the order of their numbers. The cursors go in as one JSON text, so that
 * one prepared statement serves any number of them.
 */
const sqliteReads = ({ sql, dialect, names, codec }: Source): BucketReads => {
  const text = `SELECT ${eventColumns(dialect, "t.")} FROM json_each(?) AS c CROSS JOIN ${names.table} AS t
    WHERE t.seq IN (
      SELECT s.seq FROM ${names.table} AS s WHERE s.bucket = json_extract(c.value, '$[0]') AND s.status IN (0, 2)
        AND s.seq > json_extract(c.value, '$[1]') AND s.seq <= ? ORDER BY s.seq LIMIT ?
    )`
  return {
    stableSeq: sql.unsafe<Row>(`SELECT COALESCE(MAX(seq), 0) AS seq FROM ${names.table}`).withoutTransform.pipe(
      Effect.map(([row]) => ({ seq: Number(row?.seq ?? 0), hasOpenTransactions: false })),
      asStoreError(findStableSeq)
    ),
    read: (cursors, upTo, limit) =>
      sql.unsafe(text, [JSON.stringify(cursors.map((c) => [c.bucket, c.afterSeq])), upTo, limit]).values.pipe(
        Effect.map((rows) => ({ rows: rows.map((row) => decodeRow(row, codec)), truncated: false })),
        asStoreError(readBuckets)
      )
  }
}

/** MySQL has no lateral join, so there is one bounded, ordered subselect per bucket. The text contains only numbers of our own. */
const unionRead = (
  { sql, dialect, names, codec }: Source,
  cursors: ReadonlyArray<BucketCursor>,
  upTo: number,
  limit: number
) => {
  const selects = cursors.map(
    ({ bucket, afterSeq }) =>
      `SELECT * FROM (SELECT ${eventColumns(dialect)} FROM ${names.table} WHERE pending_bucket = ${bucket}
        AND status IN (0, 2) AND seq > ${afterSeq} AND seq <= ${upTo} ORDER BY seq LIMIT ${limit}) AS b${bucket}`
  )
  return sql.unsafe(selects.join(" UNION ALL ")).valuesUnprepared.pipe(
    Effect.map((rows) => rows.map((row) => decodeRow(row, codec))),
    asStoreError(readBuckets)
  )
}

/** Runs a query that sees uncommitted rows. */
const dirtyRead = (sql: SqlClient.SqlClient, text: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const connection = yield* sql.reserve
      const setIsolation = (level: string) =>
        connection.executeUnprepared(`SET SESSION TRANSACTION ISOLATION LEVEL ${level}`, [], undefined)
      yield* setIsolation("READ UNCOMMITTED")
      return yield* Effect.ensuring(
        connection.executeUnprepared(text, [], undefined) as Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>,
        Effect.ignore(setIsolation("READ COMMITTED"))
      )
    })
  )

/**
 * MySQL shows uncommitted rows to a READ UNCOMMITTED session. A usual read returns rows up to the highest number seen before. A dirty
 * read of the same ranges then shows which rows are not committed yet, and each bucket's rows end before its first uncommitted one.
 */
const mysqlReads = (source: Source): BucketReads => {
  const { sql, names } = source
  const read: BucketReads["read"] = Effect.fnUntraced(function* (cursors, upTo, limit) {
    const rows = yield* unionRead(source, cursors, upTo, limit)
    const found = new Map<number, { count: number; last: number }>()
    for (const { bucket, seq } of rows) found.set(bucket, { count: (found.get(bucket)?.count ?? 0) + 1, last: seq })
    const ranges = cursors.map(({ bucket, afterSeq }) => {
      const inBucket = found.get(bucket)
      const to = inBucket !== undefined && inBucket.count >= limit ? inBucket.last : upTo
      return `(pending_bucket = ${bucket} AND seq > ${afterSeq} AND seq <= ${to})`
    })
    const withUncommitted = yield* dirtyRead(
      sql,
      `SELECT bucket, seq FROM ${names.table} WHERE ${ranges.join(" OR ")}`
    ).pipe(asStoreError("find uncommitted rows"))
    const committed = new Set(rows.map((row) => row.seq))
    const firstUncommitted = new Map<number, number>()
    for (const row of withUncommitted) {
      const [bucket, seq] = [Number(row.bucket), Number(row.seq)]
      if (!committed.has(seq)) firstUncommitted.set(bucket, Math.min(seq, firstUncommitted.get(bucket) ?? seq))
    }
    const stable = rows.filter((row) => row.seq < (firstUncommitted.get(row.bucket) ?? Number.POSITIVE_INFINITY))
    return { rows: stable, truncated: firstUncommitted.size > 0 }
  })
  return {
    stableSeq: dirtyRead(sql, `SELECT COALESCE(MAX(seq), 0) AS seq FROM ${names.table}`).pipe(
      Effect.map(([row]) => ({ seq: Number(row?.seq ?? 0), hasOpenTransactions: false })),
      asStoreError(findStableSeq)
    ),
    read
  }
}
