/** The loops to compare with: the same work on the same table without an outbox, 500 rows at a time. */
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { client } from "../harness/kafka.ts"

interface Row {
  readonly event_id: string
  readonly aggregate_id: string
  readonly payload: Uint8Array
}

type Sql = SqlClient.SqlClient

/** The rows of a due batch. MySQL reads them through the column that its index covers, as the outbox does. */
const dueBatch = (sql: Sql): string => {
  const [at, now, lock] = sql.onDialectOrElse({
    mysql: () => ["pending_at", "UTC_TIMESTAMP(6)", "FOR UPDATE SKIP LOCKED"] as const,
    sqlite: () => ["available_at", "(SELECT outbox_now_micros())", ""] as const,
    orElse: () => ["available_at", "statement_timestamp()", "FOR UPDATE SKIP LOCKED"] as const
  })
  return `SELECT event_id, aggregate_id, payload FROM outbox_event WHERE status IN (0, 2) AND ${at} <= ${now} ORDER BY ${at}, seq LIMIT 500 ${lock}`
}

/** A statement about the batch. PostgreSQL takes the ids as one array. */
const onBatch = (sql: Sql, verb: string, rows: ReadonlyArray<Row>): Effect.Effect<void, SqlError.SqlError> => {
  if (rows.length === 0) return Effect.void
  const ids = rows.map((row) => row.event_id)
  const statement = sql.onDialectOrElse({
    orElse: () => sql.unsafe(`${verb} WHERE event_id IN (${ids.map(() => "?").join(", ")})`, ids),
    pg: () => sql.unsafe(`${verb} WHERE event_id = ANY($1::text[])`, [ids])
  })
  return Effect.asVoid(statement)
}

const repeatUntilEmpty = <E, R>(batch: Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
  Effect.asVoid(Effect.repeat(batch, { until: (rows) => rows.length === 0 }))

/** Locks a batch and marks it done in the same transaction. */
export const lockAndMark = SqlClient.SqlClient.use((sql) => {
  const now = sql.onDialectOrElse({
    mysql: () => "UTC_TIMESTAMP(6)",
    sqlite: () => "(SELECT outbox_now_micros())",
    orElse: () => "statement_timestamp()"
  })
  const verb = `UPDATE outbox_event SET status = 1, done_at = ${now}`
  const batch = Effect.tap(sql.unsafe<Row>(dueBatch(sql)), (rows) => onBatch(sql, verb, rows))
  return repeatUntilEmpty(sql.withTransaction(batch))
})

/** Deletes a batch and returns it in one statement. PostgreSQL only. */
export const lockAndDelete = SqlClient.SqlClient.use((sql) =>
  repeatUntilEmpty(
    sql.unsafe(
      `DELETE FROM outbox_event WHERE ctid = ANY(ARRAY(SELECT ctid FROM outbox_event WHERE status IN (0, 2)
         AND available_at <= statement_timestamp() ORDER BY available_at, seq LIMIT 500 FOR UPDATE SKIP LOCKED))
       RETURNING event_id, payload`
    )
  )
)

/** Reads a batch in order and deletes it, bucket by bucket. */
export const bucketReadAndDelete = SqlClient.SqlClient.use((sql) =>
  Effect.forEach(
    Array(64).keys(),
    (bucket) => {
      const read = sql.unsafe<Row>(
        "SELECT event_id, payload FROM outbox_event WHERE bucket = $1 AND status IN (0, 2) ORDER BY seq LIMIT 500",
        [bucket]
      )
      return repeatUntilEmpty(
        Effect.tap(read, (rows) => (rows.length === 0 ? Effect.void : onBatch(sql, "DELETE FROM outbox_event", rows)))
      )
    },
    { discard: true }
  )
)

/** Locks a batch, sends it with the bare client and all acknowledgements, and deletes it. */
export const lockSendAndDelete = (brokers: ReadonlyArray<string>, topic: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const producer = yield* Effect.acquireRelease(
      Effect.promise(async () => {
        const connected = client(brokers).producer()
        await connected.connect()
        return connected
      }),
      (connected) => Effect.promise(() => connected.disconnect())
    )
    const send = (rows: ReadonlyArray<Row>) => {
      const messages = rows.map((row) => ({ key: row.aggregate_id, value: Buffer.from(row.payload) }))
      return Effect.promise(() => producer.send({ topic, messages, acks: -1 }))
    }
    const batch = Effect.tap(sql.unsafe<Row>(dueBatch(sql)), (rows) =>
      rows.length === 0 ? Effect.void : Effect.andThen(send(rows), onBatch(sql, "DELETE FROM outbox_event", rows))
    )
    yield* repeatUntilEmpty(sql.withTransaction(batch))
  }).pipe(Effect.scoped)
