/**
 * The inbox: a consumer handles an event once, in the transaction that also remembers it. With the outbox and a relay, an event takes
 * effect once, however often it is delivered.
 *
 * The inbox owns the table of handled events. The table grows until it is purged. The retention must be longer than the time within
 * which an event can be delivered again.
 */
import { createHash } from "node:crypto"
import { Kinds, Ranges } from "@eventbus/core"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as SqlClient from "effect/sql/SqlClient"
import { invalid } from "./internal/base/envelopeChecks.ts"
import { checkTableName } from "./internal/base/identifier.ts"
import { problemsOf, refuse, within } from "./internal/base/options.ts"
import { storeError } from "./internal/store/context.ts"
import { affectedRows, dialectOf } from "./internal/store/dialect.ts"
import type { InvalidIdentifier, OutboxStoreError } from "./OutboxError.ts"
import { purge as range } from "./OutboxRanges.ts"

/** Settings of all functions here. */
export interface InboxOptions {
  /** The table of handled events, optionally qualified by a schema. Default `outbox_inbox`. */
  readonly table?: string
}

/** Handles each event once per consumer. */
export class Inbox extends Context.Service<
  Inbox,
  {
    /**
     * Runs the handler in a transaction, unless this consumer has handled the event already; then returns none. The handler's writes and
     * the memory of the event commit together. When the handler fails, the call fails with its error and nothing is remembered. A
     * concurrent delivery of the same event waits until the first one ends. Consumer and id may be any text that is not empty; anything else, such as a header that is
     * missing, is a defect (`InvalidEnvelope`), so that the record fails and no event is taken for another one.
     */
    readonly once: (
      consumer: string,
      eventId: string
    ) => <A, E, R>(handler: Effect.Effect<A, E, R>) => Effect.Effect<Option.Option<A>, E | OutboxStoreError, R>
    /** Forgets at most `limit` events that were handled longer ago than `retention`; returns how many. Throws `InvalidOutboxConfig` for a retention that is no duration above 0, or a limit that is no whole number. */
    readonly purge: (retention: Duration.Input, limit: number) => Effect.Effect<number, OutboxStoreError>
  }
>()("@eventbus/outbox/Inbox") {}

const defaultTable = "outbox_inbox"
const maxLength = 128

/** Keeps the handler's errors apart from those of the transaction around it, whatever their types. */
class HandlerFailed<E> {
  readonly error: E
  constructor(error: E) {
    this.error = error
  }
}

/**
 * The stored form of a consumer or an id. Text that a database would cut, refuse or take for other text is stored as its SHA-256. (MySQL
 * ignores spaces at the end of a key.)
 */
const storable = (text: string): string =>
  text.length <= maxLength && text.isWellFormed() && !/\0| $|^sha256:/.test(text)
    ? text
    : `sha256:${createHash("sha256").update(text, "utf16le").digest("hex")}`

/** Events without an id would all be the same event, and all but the first would count as handled. */
const nameProblem = (field: string, text: unknown) => {
  if (typeof text !== "string") return invalid(field, "is not text")
  return text === "" ? invalid(field, "is empty") : undefined
}

/** Creates the table when it is missing. May be run again. Fails on an illegal table name, or when the database refuses. */
export const migrate: (
  options?: InboxOptions
) => Effect.Effect<void, InvalidIdentifier | OutboxStoreError, SqlClient.SqlClient> = Effect.fnUntraced(function* (
  options = {}
) {
  refuse("Inbox", problemsOf(options, { table: Kinds.string }))
  const sql = yield* SqlClient.SqlClient
  const table = yield* checkTableName(options.table ?? defaultTable)
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
    .unprepared.pipe(Effect.mapError(storeError("migrate inbox")))
})

/** The inbox of this table. Fails on an illegal table name. */
export const make: (options?: InboxOptions) => Effect.Effect<Inbox["Service"], InvalidIdentifier, SqlClient.SqlClient> =
  Effect.fnUntraced(function* (options = {}) {
    refuse("Inbox", problemsOf(options, { table: Kinds.string }))
    const sql = yield* SqlClient.SqlClient
    const dialect = dialectOf(sql)
    const table = yield* checkTableName(options.table ?? defaultTable)
    const [verb, rest] = dialect.name === "mysql" ? ["INSERT IGNORE", ""] : ["INSERT", "ON CONFLICT DO NOTHING"]
    const values = `(${dialect.param(1)}, ${dialect.param(2)}, ${dialect.now})`
    const insert = `${verb} INTO ${table} (consumer, event_id, handled_at) VALUES ${values} ${rest}`

    return Inbox.of({
      once: (consumer, eventId) => (handler) => {
        const problem = nameProblem("consumer", consumer) ?? nameProblem("eventId", eventId)
        if (problem !== undefined) return Effect.die(problem)
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
          error instanceof HandlerFailed ? error.error : storeError("inbox transaction")(error)
        )
      },
      purge: (retention, limit) => {
        refuse("Inbox", within("retention", retention, range.retention), within("limit", limit, range.limit))
        const before = dialect.minusMillis(dialect.now, String(Ranges.millisOf(retention)))
        const atMost = `WHERE handled_at < ${before} LIMIT ${limit}`
        const text =
          dialect.name === "mysql"
            ? `DELETE FROM ${table} ${atMost}`
            : `DELETE FROM ${table} WHERE (consumer, event_id) IN (SELECT consumer, event_id FROM ${table} ${atMost})`
        return sql.unsafe(text).raw.pipe(Effect.map(affectedRows), Effect.mapError(storeError("purge inbox")))
      }
    })
  })

/** The inbox of this table, as a layer. */
export const layer = (options?: InboxOptions): Layer.Layer<Inbox, InvalidIdentifier, SqlClient.SqlClient> =>
  Layer.effect(Inbox, make(options))
