/**
 * Reads for ordered delivery: the pending rows of buckets in insertion order, and never past a row that a slow transaction may
 * still commit (ruling 46).
 */
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { JsonCodec } from "../../JsonCodec.ts"
import { OutboxStoreError } from "../../OutboxError.ts"
import type { Dialect } from "../store/dialect.ts"
import { decodeRow, eventColumns, type PolledEvent } from "../store/rows.ts"
import type { TableNames } from "../store/tableNames.ts"

/** Where to read on in one bucket: behind this sequence number. */
export interface BucketCursor {
  readonly bucket: number
  readonly afterSeq: number
}

/** Up to `seq`, every row is either committed or will never be. `open`: higher numbers were given out, and are not settled yet. */
export interface StableSeq {
  readonly seq: number
  readonly hasOpenTransactions: boolean
}

export interface BucketReads {
  readonly stableSeq: Effect.Effect<StableSeq, OutboxStoreError>
  /** At most `limit` pending rows per bucket in insertion order, due or not, up to the horizon; `cut` when more will follow soon. */
  readonly read: (
    cursors: ReadonlyArray<BucketCursor>,
    horizon: number,
    limit: number
  ) => Effect.Effect<{ readonly rows: ReadonlyArray<PolledEvent>; readonly cut: boolean }, OutboxStoreError>
}

type Row = Record<string, unknown>

const failed = (operation: string) =>
  Effect.mapError(
    (cause: SqlError.SqlError) => new OutboxStoreError({ operation, retryable: cause.isRetryable, cause })
  )

export const makeBucketReads = (dialect: Dialect, names: TableNames, codec: JsonCodec) =>
  Effect.map(SqlClient.SqlClient, (sql): BucketReads => {
    switch (dialect.name) {
      case "pg":
        return pgReads(sql, dialect, names, codec)
      case "mysql":
        return mysqlReads(sql, dialect, names, codec)
      case "sqlite":
        // One writer at a time: rows become visible in the order of their numbers.
        return {
          stableSeq: sql.unsafe<Row>(`SELECT COALESCE(MAX(seq), 0) AS seq FROM ${names.table}`).withoutTransform.pipe(
            Effect.map(([row]) => ({ seq: Number(row?.seq ?? 0), hasOpenTransactions: false })),
            failed("find the settled rows")
          ),
          read: sqliteRead(sql, dialect, names, codec)
        }
    }
  })

/**
 * PostgreSQL: a barrier. First the highest number given out so far, then the transactions that hold a writer's lock on the table: a
 * row's transaction takes that lock before the row takes its number, and keeps it until it has ended. Once all of those have ended,
 * all numbers up to the first are settled. Transactions that do not write to the table hold nothing up.
 */
const pgReads = (sql: SqlClient.SqlClient, dialect: Dialect, names: TableNames, codec: JsonCodec): BucketReads => {
  let confirmed = 0
  let barrier: { readonly seq: number; readonly writers: ReadonlySet<string> } | undefined

  // The locks are looked at behind the number, which they depend on.
  const looked = sql.unsafe<Row>(
    `SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END AS seq, w.writers FROM ${names.sequence} s CROSS JOIN LATERAL (
      SELECT array_agg(virtualtransaction) AS writers FROM pg_locks WHERE s.last_value >= 0 AND locktype = 'relation'
        AND relation = '${names.table}'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND mode = 'RowExclusiveLock' AND granted AND pid <> pg_backend_pid()
    ) w`
  ).withoutTransform

  const horizon = Effect.map(looked, ([row]): StableSeq => {
    const seq = barrier?.seq ?? Number(row?.seq ?? 0)
    if (seq <= confirmed) return { seq: confirmed, hasOpenTransactions: false }
    const now: ReadonlyArray<string> = Array.isArray(row?.writers) ? row.writers.map(String) : []
    const before = barrier?.writers ?? new Set(now)
    const still = new Set(now.filter((tx) => before.has(tx)))
    barrier = still.size === 0 ? undefined : { seq, writers: still }
    if (barrier === undefined) confirmed = seq
    return { seq: confirmed, hasOpenTransactions: barrier !== undefined }
  }).pipe(failed("find the settled rows"))

  const text = `SELECT ${eventColumns(dialect, "e.")} FROM unnest($1::int8[], $2::int8[]) AS c(bucket, after_seq)
    CROSS JOIN LATERAL (
      SELECT t.ctid, t.* FROM ${names.table} t WHERE t.bucket = c.bucket AND t.status IN (0, 2) AND t.seq > c.after_seq AND t.seq <= $3
      ORDER BY t.seq LIMIT $4
    ) e`
  return {
    stableSeq: horizon,
    read: (cursors, upTo, limit) =>
      sql.unsafe(text, [cursors.map((c) => c.bucket), cursors.map((c) => c.afterSeq), upTo, limit]).values.pipe(
        Effect.map((rows) => ({ rows: rows.map((row) => decodeRow(row, codec)), cut: false })),
        failed("read buckets")
      )
  }
}

/** SQLite takes the cursors as one JSON text, so that one prepared statement serves them all. */
const sqliteRead = (
  sql: SqlClient.SqlClient,
  dialect: Dialect,
  names: TableNames,
  codec: JsonCodec
): BucketReads["read"] => {
  const text = `SELECT ${eventColumns(dialect, "t.")} FROM json_each(?) AS c CROSS JOIN ${names.table} AS t
    WHERE t.seq IN (
      SELECT s.seq FROM ${names.table} AS s WHERE s.bucket = json_extract(c.value, '$[0]') AND s.status IN (0, 2)
        AND s.seq > json_extract(c.value, '$[1]') AND s.seq <= ? ORDER BY s.seq LIMIT ?
    )`
  return (cursors, horizon, limit) =>
    sql.unsafe(text, [JSON.stringify(cursors.map((c) => [c.bucket, c.afterSeq])), horizon, limit]).values.pipe(
      Effect.map((rows) => ({ rows: rows.map((row) => decodeRow(row, codec)), cut: false })),
      failed("read buckets")
    )
}

/** MySQL has no lateral join: one bounded, ordered subselect per bucket. All that goes into the text are numbers of our own. */
const unionRead = (
  sql: SqlClient.SqlClient,
  dialect: Dialect,
  names: TableNames,
  codec: JsonCodec,
  cursors: ReadonlyArray<BucketCursor>,
  horizon: number,
  limit: number
) => {
  const selects = cursors.map(
    ({ bucket, afterSeq }) =>
      `SELECT * FROM (SELECT ${eventColumns(dialect)} FROM ${names.table} WHERE pending_bucket = ${bucket}
        AND status IN (0, 2) AND seq > ${afterSeq} AND seq <= ${horizon} ORDER BY seq LIMIT ${limit}) AS b${bucket}`
  )
  return sql.unsafe(selects.join(" UNION ALL ")).valuesUnprepared.pipe(
    Effect.map((rows) => rows.map((row) => decodeRow(row, codec))),
    failed("read buckets")
  )
}

/**
 * MySQL shows uncommitted rows to a READ UNCOMMITTED session. Rows are read as usual, up to the highest number seen before; then a
 * dirty read of the same ranges tells which of them are not committed yet, and each bucket is cut off before its first.
 */
const mysqlReads = (sql: SqlClient.SqlClient, dialect: Dialect, names: TableNames, codec: JsonCodec): BucketReads => {
  const dirty = (text: string) =>
    Effect.scoped(
      Effect.gen(function* () {
        const connection = yield* sql.reserve
        const isolation = (level: string) =>
          connection.executeUnprepared(`SET SESSION TRANSACTION ISOLATION LEVEL ${level}`, [], undefined)
        yield* isolation("READ UNCOMMITTED")
        return yield* Effect.ensuring(
          connection.executeUnprepared(text, [], undefined) as Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>,
          Effect.ignore(isolation("READ COMMITTED"))
        )
      })
    )

  const horizon = dirty(`SELECT COALESCE(MAX(seq), 0) AS seq FROM ${names.table}`).pipe(
    Effect.map(([row]) => ({ seq: Number(row?.seq ?? 0), hasOpenTransactions: false })),
    failed("find the settled rows")
  )

  const read: BucketReads["read"] = Effect.fnUntraced(function* (cursors, upTo, limit) {
    const rows = yield* unionRead(sql, dialect, names, codec, cursors, upTo, limit)
    const counts = new Map<number, { seen: number; last: number }>()
    for (const { bucket, seq } of rows) counts.set(bucket, { seen: (counts.get(bucket)?.seen ?? 0) + 1, last: seq })
    const ranges = cursors.map(({ bucket, afterSeq }) => {
      const found = counts.get(bucket)
      const to = found !== undefined && found.seen >= limit ? found.last : upTo
      return `(pending_bucket = ${bucket} AND seq > ${afterSeq} AND seq <= ${to})`
    })
    const present = yield* dirty(`SELECT bucket, seq FROM ${names.table} WHERE ${ranges.join(" OR ")}`).pipe(
      failed("find uncommitted rows")
    )
    const committed = new Set(rows.map((row) => row.seq))
    const firstOpen = new Map<number, number>()
    for (const row of present) {
      const [bucket, seq] = [Number(row.bucket), Number(row.seq)]
      if (!committed.has(seq)) firstOpen.set(bucket, Math.min(seq, firstOpen.get(bucket) ?? seq))
    }
    const settled = rows.filter((row) => row.seq < (firstOpen.get(row.bucket) ?? Number.POSITIVE_INFINITY))
    return { rows: settled, cut: firstOpen.size > 0 }
  })
  return { stableSeq: horizon, read }
}
