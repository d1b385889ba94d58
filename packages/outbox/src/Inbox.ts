/**
 * The consuming half: an event is handled once per consumer, in the transaction that also remembers it. Together with the outbox and
 * a relay, an event takes effect once however often it is delivered.
 *
 * Owns the table of handled events. It grows until it is purged; the retention must be longer than anything can be redelivered.
 */
import { createHash } from "node:crypto"
import { Context, Duration, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { checkTableName } from "./internal/base/identifier.ts"
import { affectedRows, dialectOf } from "./internal/store/dialect.ts"
import { type InvalidIdentifier, OutboxStoreError } from "./OutboxError.ts"
import { defaultInboxTable } from "./OutboxSchema.ts"

export interface InboxOptions {
  /** Default `outbox_inbox`. */
  readonly table?: string
}

export class Inbox extends Context.Service<
  Inbox,
  {
    /**
     * Runs the effect in a transaction, unless this consumer has handled the event already: then none. What the effect writes and the
     * memory of the event commit together. Fails as the effect does, and then nothing is remembered. A concurrent delivery of the same
     * event waits for the first one's end. Consumer and id may be any text: ids need not come from an outbox.
     */
    readonly once: (
      consumer: string,
      eventId: string
    ) => <A, E, R>(handler: Effect.Effect<A, E, R>) => Effect.Effect<Option.Option<A>, E | OutboxStoreError, R>
    /** Forgets what was handled longer ago, at most `limit` rows; returns how many. */
    readonly purge: (retention: Duration.Input, limit: number) => Effect.Effect<number, OutboxStoreError>
  }
>()("@eventbus/outbox/Inbox") {}

const failed = (operation: string) => (cause: SqlError.SqlError) =>
  new OutboxStoreError({ operation, retryable: cause.isRetryable, cause })

/** Keeps the handler's errors apart from those of the transaction around it, whatever their types. */
class HandlerFailed<E> {
  readonly error: E
  constructor(error: E) {
    this.error = error
  }
}

/**
 * What is stored for a consumer or an id: itself, unless a database would cut it, refuse it or take it for another (MySQL ignores spaces at the end). Then its
 * SHA-256 is.
 */
const storable = (text: string): string =>
  text.length <= maxLength && text.isWellFormed() && !/\0| $|^sha256:/.test(text)
    ? text
    : `sha256:${createHash("sha256").update(text, "utf16le").digest("hex")}`

const maxLength = 128

/** Creates the table; may be run again. */
export const migrate = Effect.fnUntraced(function* (options: InboxOptions = {}) {
  const sql = yield* SqlClient.SqlClient
  const table = yield* checkTableName(options.table ?? defaultInboxTable, "table name")
  const time = sql.onDialectOrElse({
    mysql: () => "datetime(6)",
    sqlite: () => "INTEGER",
    orElse: () => "timestamptz(6)"
  })
  const text = sql.onDialectOrElse({
    mysql: () => `varchar(${maxLength}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    orElse: () => `varchar(${maxLength})`
  })
  yield* sql
    .unsafe(
      `CREATE TABLE IF NOT EXISTS ${table} (
        consumer ${text} NOT NULL, event_id ${text} NOT NULL, handled_at ${time} NOT NULL, PRIMARY KEY (consumer, event_id)
      )`
    )
    .unprepared.pipe(Effect.mapError(failed("migrate inbox")))
})

export const make: (options?: InboxOptions) => Effect.Effect<Inbox["Service"], InvalidIdentifier, SqlClient.SqlClient> =
  Effect.fnUntraced(function* (options = {}) {
    const sql = yield* SqlClient.SqlClient
    const dialect = dialectOf(sql)
    const table = yield* checkTableName(options.table ?? defaultInboxTable, "table name")
    const [verb, rest] = dialect.name === "mysql" ? ["INSERT IGNORE", ""] : ["INSERT", "ON CONFLICT DO NOTHING"]
    const values = `(${dialect.param(1)}, ${dialect.param(2)}, ${dialect.now})`
    const insert = `${verb} INTO ${table} (consumer, event_id, handled_at) VALUES ${values} ${rest}`

    return Inbox.of({
      once: (consumer, eventId) => (handler) => {
        const remember = sql.unsafe(insert, [storable(consumer), storable(eventId)]).raw
        const body = Effect.flatMap(remember, (raw) =>
          affectedRows(raw) > 0
            ? Effect.map(
                Effect.mapError(handler, (error) => new HandlerFailed(error)),
                Option.some
              )
            : Effect.succeed(Option.none())
        )
        return Effect.mapError(sql.withTransaction(body), (error) =>
          error instanceof HandlerFailed ? error.error : failed("inbox transaction")(error)
        )
      },
      purge: (retention, limit) => {
        const before = dialect.minusMillis(dialect.now, String(Duration.toMillis(Duration.fromInputUnsafe(retention))))
        const rows = `SELECT consumer, event_id FROM ${table} WHERE handled_at < ${before} LIMIT ${Math.max(0, Math.trunc(limit))}`
        const text =
          dialect.name === "mysql"
            ? `DELETE FROM ${table} WHERE handled_at < ${before} LIMIT ${Math.max(0, Math.trunc(limit))}`
            : `DELETE FROM ${table} WHERE (consumer, event_id) IN (${rows})`
        return sql.unsafe(text).raw.pipe(Effect.map(affectedRows), Effect.mapError(failed("purge inbox")))
      }
    })
  })

export const layer = (options?: InboxOptions): Layer.Layer<Inbox, InvalidIdentifier, SqlClient.SqlClient> =>
  Layer.effect(Inbox, make(options))
