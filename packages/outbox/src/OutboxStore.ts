/**
 * The outbox table as operations: the only place that writes its SQL. One implementation for PostgreSQL, MySQL/MariaDB and
 * SQLite over the differences in `internal/dialect.ts`.
 *
 * Owns no state. A statement joins the transaction of the fiber that runs it; dispatcher, poller and purge run theirs outside
 * of any, each in a short transaction of its own. No row lock or connection is held between two calls.
 */
import { Context, Duration, Effect, Layer, Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { EventEnvelope } from "./EventEnvelope.ts"
import { DEAD, DONE, NEW, RETRY } from "./EventStatus.ts"
import { affectedRows, type Dialect, dialectOf } from "./internal/dialect.ts"
import { checkTableName } from "./internal/identifier.ts"
import { type InsertStatement, insertStatement } from "./internal/insertStatement.ts"
import { decodeRow, eventColumns, type PolledEvent } from "./internal/rows.ts"
import { storableError } from "./internal/storableError.ts"
import { type TableNames, tableNames } from "./internal/tableNames.ts"
import { defaultCodec, type JsonCodec } from "./JsonCodec.ts"
import { type InvalidIdentifier, OutboxStoreError } from "./OutboxError.ts"
import { defaultTable } from "./OutboxSchema.ts"

export type { InsertStatement } from "./internal/insertStatement.ts"
export type { OutboxEvent, PolledEvent } from "./internal/rows.ts"

export interface StoreOptions {
  /** Default `outbox_event`. */
  readonly table?: string
  /** How headers become text. Default: flat JSON. */
  readonly codec?: JsonCodec
  /** What becomes of finished rows: kept as DONE until purge, or deleted on the spot (about half the write-ahead log). Default `keep`. */
  readonly onDone?: "keep" | "delete"
}

/** Who may change a row's state: anybody, or only the holder of its claim or of its bucket (ruling 41). */
export type Fence =
  | { readonly _tag: "Open" }
  | { readonly _tag: "Claim"; readonly owner: string }
  | { readonly _tag: "Buckets"; readonly owner: string; readonly epochs: ReadonlyMap<number, number> }

export const openFence: Fence = { _tag: "Open" }

/** The place of a row in the order in which pending rows are read. */
export interface PollCursor {
  readonly availableAtMicros: number
  readonly seq: number
}

export interface PollOptions {
  /** Most rows, 1 or more. */
  readonly limit: number
  /** Leaves out rows that were created less than this ago. Default 0: none. */
  readonly skipRecent?: Duration.Input
}

export interface ClaimOptions extends PollOptions {
  /** Unique per running process, at most 128 characters. */
  readonly owner: string
  /** A claim older than this may be taken by another owner. */
  readonly lockTimeout: Duration.Input
}

export interface DeadFilter {
  readonly eventType?: string
  readonly aggregateType?: string
}

/** Pending rows: how many, and the age of the oldest that is due (0 when there is none). */
export interface Lag {
  readonly pending: number
  readonly dead: number
  readonly oldestMillis: number
}

type Stored<A> = Effect.Effect<A, OutboxStoreError>

export class OutboxStore extends Context.Service<
  OutboxStore,
  {
    readonly dialect: Dialect
    readonly names: TableNames
    readonly onDone: "keep" | "delete"
    /** The insert of rows with status NEW as text and parameters, for a transaction that Effect does not own. */
    readonly insertStatements: (
      events: ReadonlyArray<EventEnvelope>,
      claimedBy?: string
    ) => ReadonlyArray<InsertStatement>
    /** Inserts rows with status NEW, in order, in the transaction of this fiber. `claimedBy` takes the claim with the insert. */
    readonly insertNew: (events: ReadonlyArray<EventEnvelope>, claimedBy?: string) => Stored<void>
    /** DONE (or gone, with `onDone: "delete"`). Acts on NEW and RETRY rows only; returns how many changed. */
    readonly markDone: (eventIds: ReadonlyArray<string>, fence?: Fence) => Stored<number>
    /** RETRY: attempts + 1, available again after the delay on the database's clock. */
    readonly markRetry: (eventId: string, delay: Duration.Input, error: string, fence?: Fence) => Stored<number>
    /** DEAD, with the time of it. */
    readonly markDead: (eventId: string, error: string, fence?: Fence) => Stored<number>
    /** Due rows, oldest first, from behind a cursor. */
    readonly pollPending: (options: PollOptions & { readonly after?: PollCursor }) => Stored<ReadonlyArray<PolledEvent>>
    /** Due rows that nobody holds, taken for `owner`. Two claimers never get the same row. */
    readonly claimPending: (options: ClaimOptions) => Stored<ReadonlyArray<PolledEvent>>
    /** Makes claims young again; returns the ids that this owner still holds. */
    readonly renewClaims: (owner: string, eventIds: ReadonlyArray<string>) => Stored<ReadonlyArray<string>>
    /** Gives claims back, so that anyone may take the rows at once. */
    readonly releaseClaims: (owner: string, eventIds: ReadonlyArray<string>) => Stored<number>
    /** DEAD rows, oldest first, from behind a sequence number. */
    readonly queryDead: (filter: DeadFilter, limit: number, afterSeq?: number) => Stored<ReadonlyArray<PolledEvent>>
    /** A DEAD row becomes NEW: attempts 0, available now, error and terminal time cleared. Returns rows changed. */
    readonly replayDead: (eventId: string) => Stored<number>
    readonly countDead: (filter: DeadFilter) => Stored<number>
    /** Deletes at most `limit` DONE and DEAD rows that have been terminal for longer than `retention`, oldest first. */
    readonly purgeTerminal: (retention: Duration.Input, limit: number) => Stored<number>
    /** What `purgeTerminal` would delete now. */
    readonly queryTerminal: (retention: Duration.Input, limit: number) => Stored<ReadonlyArray<PolledEvent>>
    /** Deletes DONE and DEAD rows by id. */
    readonly deleteTerminal: (eventIds: ReadonlyArray<string>) => Stored<number>
    /** Deletes rows by age of creation whatever their state: for writer-only tables that nothing marks (CDC). */
    readonly purgeByAge: (retention: Duration.Input, limit: number) => Stored<number>
    readonly lag: Stored<Lag>
    /** Milliseconds until the next pending row that is not due yet becomes due; undefined when there is none. */
    readonly nextDue: Stored<number | undefined>
  }
>()("@eventbus/outbox/OutboxStore") {}

export type Shape = OutboxStore["Service"]

/** The store of the `SqlClient`'s database; the dialect is detected from the client. */
export const make: (options?: StoreOptions) => Effect.Effect<Shape, InvalidIdentifier, SqlClient.SqlClient> =
  Effect.fnUntraced(function* (options: StoreOptions = {}) {
    const sql = yield* SqlClient.SqlClient
    const names = tableNames(yield* checkTableName(options.table ?? defaultTable, "table name"))
    const dialect = dialectOf(sql)
    return build(sql, dialect, names, options.codec ?? defaultCodec, options.onDone ?? "keep")
  })

export const layer = (options?: StoreOptions): Layer.Layer<OutboxStore, InvalidIdentifier, SqlClient.SqlClient> =>
  Layer.effect(OutboxStore, make(options))

const millis = (duration: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(duration))

const pending = `status IN (${NEW}, ${RETRY})`

/** Collects parameters while a statement is written, so that text and values cannot come apart. */
const parameters = (dialect: Dialect) => {
  const values: Array<unknown> = []
  const bind = (value: unknown): string => {
    values.push(value)
    return dialect.param(values.length)
  }
  /**
   * Membership of a list that is not empty. PostgreSQL takes it as one array; elsewhere it is padded to a power of two with its
   * last value, so that a handful of prepared statements serve every length.
   */
  const oneOf = (column: string, list: ReadonlyArray<string>): string => {
    if (dialect.name === "pg") return `${column} = ANY(${bind(list)}::text[])`
    const width = 2 ** Math.ceil(Math.log2(list.length))
    return `${column} IN (${Array.from({ length: width }, (_, i) => bind(list[Math.min(i, list.length - 1)])).join(", ")})`
  }
  return { values, bind, oneOf }
}

type Parameters = ReturnType<typeof parameters>

const fenceCondition = (fence: Fence, names: TableNames, dialect: Dialect, p: Parameters): string => {
  if (fence._tag === "Open") return ""
  if (fence._tag === "Claim") return ` AND locked_by = ${p.bind(fence.owner)}`
  const owned = `SELECT 1 FROM ${names.bucket} b WHERE b.bucket = ${names.unqualified}.bucket AND b.owner = ${p.bind(fence.owner)}`
  const pairs = [...fence.epochs]
  if (dialect.name === "pg") {
    const epochs = `unnest(${p.bind(pairs.map(([bucket]) => bucket))}::int8[], ${p.bind(pairs.map(([, epoch]) => epoch))}::int8[])`
    return ` AND EXISTS (${owned} AND (b.bucket, b.epoch) IN (SELECT * FROM ${epochs}))`
  }
  const rows = pairs.map(([bucket, epoch]) => `(b.bucket = ${p.bind(bucket)} AND b.epoch = ${p.bind(epoch)})`)
  return ` AND EXISTS (${owned} AND (${rows.join(" OR ")}))`
}

const build = (
  sql: SqlClient.SqlClient,
  dialect: Dialect,
  names: TableNames,
  codec: JsonCodec,
  onDone: "keep" | "delete"
): Shape => {
  const table = names.table
  const failed = (operation: string) =>
    Effect.mapError(
      (cause: SqlError.SqlError) => new OutboxStoreError({ operation, retryable: cause.isRetryable, cause })
    )
  const rows = (operation: string, text: string, values: ReadonlyArray<unknown>) =>
    sql.unsafe<Record<string, unknown>>(text, values).pipe(failed(operation))
  const change = (operation: string, text: string, values: ReadonlyArray<unknown>) =>
    sql.unsafe(text, values).raw.pipe(Effect.map(affectedRows), failed(operation))
  const decode = (found: ReadonlyArray<Record<string, unknown>>) => found.map((row) => decodeRow(row, codec))

  const insertStatements: Shape["insertStatements"] = (events, claimedBy) =>
    insertStatement(dialect, table, codec, events, claimedBy)

  const insertNew: Shape["insertNew"] = (events, claimedBy) => {
    const [first, ...more] = insertStatements(events, claimedBy)
    if (first === undefined) return Effect.void
    const insert = (s: InsertStatement) => change("insert", s.text, s.params)
    return more.length === 0
      ? Effect.asVoid(insert(first))
      : Effect.forEach([first, ...more], insert, { discard: true })
  }

  const markDone: Shape["markDone"] = (eventIds, fence = openFence) => {
    if (eventIds.length === 0) return Effect.succeed(0)
    const p = parameters(dialect)
    const verb =
      onDone === "delete"
        ? `DELETE FROM ${table}`
        : `UPDATE ${table} SET status = ${DONE}, done_at = ${dialect.now}, locked_by = NULL, locked_at = NULL`
    const where = `${p.oneOf("event_id", eventIds)} AND ${pending}${fenceCondition(fence, names, dialect, p)}`
    return change("mark done", `${verb} WHERE ${where}`, p.values)
  }

  const markRetry: Shape["markRetry"] = (eventId, delay, error, fence = openFence) => {
    const p = parameters(dialect)
    const set = `status = ${RETRY}, attempts = attempts + 1, available_at = ${dialect.plusMillis(dialect.now, p.bind(millis(delay)))},
      last_error = ${p.bind(storableError(error))}, locked_by = NULL, locked_at = NULL`
    const where = `event_id = ${p.bind(eventId)} AND ${pending}${fenceCondition(fence, names, dialect, p)}`
    return change("mark retry", `UPDATE ${table} SET ${set} WHERE ${where}`, p.values)
  }

  const markDead: Shape["markDead"] = (eventId, error, fence = openFence) => {
    const p = parameters(dialect)
    const set = `status = ${DEAD}, done_at = ${dialect.now}, last_error = ${p.bind(storableError(error))}, locked_by = NULL, locked_at = NULL`
    const where = `event_id = ${p.bind(eventId)} AND ${pending}${fenceCondition(fence, names, dialect, p)}`
    return change("mark dead", `UPDATE ${table} SET ${set} WHERE ${where}`, p.values)
  }

  /** MySQL reads the pending rows through the generated column that its index covers. */
  const availableAt = dialect.name === "mysql" ? "pending_at" : "available_at"
  const due = (options: PollOptions, p: Parameters): string => {
    const skip = millis(options.skipRecent ?? 0)
    const recent = skip > 0 ? ` AND created_at <= ${dialect.minusMillis(dialect.now, p.bind(skip))}` : ""
    return `${pending} AND ${availableAt} <= ${dialect.now}${recent}`
  }
  // mysql2 sends numbers as doubles, which MySQL refuses in a LIMIT.
  const limitTo = (limit: number, p: Parameters): string =>
    dialect.name === "mysql" ? `LIMIT ${Math.trunc(limit)}` : `LIMIT ${p.bind(limit)}`
  const inOrder = `ORDER BY ${availableAt}, seq`

  const pollPending: Shape["pollPending"] = (options) => {
    const p = parameters(dialect)
    const columns = eventColumns(dialect)
    let where = due(options, p)
    if (options.after !== undefined) {
      const at = dialect.fromMillis(p.bind(options.after.availableAtMicros / 1000))
      where += ` AND (${availableAt}, seq) > (${at}, ${p.bind(options.after.seq)})`
    }
    const text = `SELECT ${columns} FROM ${table} WHERE ${where} ${inOrder} ${limitTo(options.limit, p)}`
    return Effect.map(rows("poll", text, p.values), decode)
  }

  const claimable = (options: ClaimOptions, p: Parameters): string =>
    `${due(options, p)} AND (locked_at IS NULL OR locked_at <= ${dialect.minusMillis(dialect.now, p.bind(millis(options.lockTimeout)))})`

  const claimInOneStatement: Shape["claimPending"] = (options) => {
    const p = parameters(dialect)
    const key = dialect.name === "pg" ? "ctid" : "seq"
    const owner = p.bind(options.owner)
    const chosen = `SELECT ${key} FROM ${table} WHERE ${claimable(options, p)} ${inOrder} ${limitTo(options.limit, p)} ${dialect.skipLocked}`
    const from =
      dialect.name === "pg"
        ? `WITH chosen AS MATERIALIZED (${chosen}) UPDATE ${table} t SET locked_by = ${owner}, locked_at = ${dialect.now} FROM chosen WHERE t.ctid = chosen.ctid`
        : `UPDATE ${table} SET locked_by = ${owner}, locked_at = ${dialect.now} WHERE seq IN (${chosen})`
    return rows(
      "claim",
      `${from} RETURNING ${eventColumns(dialect, dialect.name === "pg" ? "t." : "")}`,
      p.values
    ).pipe(Effect.map((found) => decode(found).sort(oldestFirst)))
  }

  const claimInTwoSteps: Shape["claimPending"] = Effect.fnUntraced(function* (options) {
    const p = parameters(dialect)
    const text = `SELECT ${eventColumns(dialect)} FROM ${table} WHERE ${claimable(options, p)} ${inOrder} ${limitTo(options.limit, p)} ${dialect.skipLocked}`
    const found = yield* rows("claim", text, p.values)
    if (found.length === 0) return []
    const u = parameters(dialect)
    const set = `locked_by = ${u.bind(options.owner)}, locked_at = ${dialect.now}`
    const ids = found.map((row) => String(row.event_id))
    yield* change("claim", `UPDATE ${table} SET ${set} WHERE ${u.oneOf("event_id", ids)}`, u.values)
    return decode(found)
  })

  const claimPending: Shape["claimPending"] = (options) =>
    dialect.name === "mysql"
      ? sql
          .withTransaction(claimInTwoSteps(options))
          .pipe(
            Effect.mapError((cause) =>
              cause._tag === "OutboxStoreError"
                ? cause
                : new OutboxStoreError({ operation: "claim", retryable: cause.isRetryable, cause })
            )
          )
      : claimInOneStatement(options)

  const claimsOf = (owner: string, eventIds: ReadonlyArray<string>, p: Parameters): string =>
    `${p.oneOf("event_id", eventIds)} AND locked_by = ${p.bind(owner)} AND ${pending}`

  const renewClaims: Shape["renewClaims"] = Effect.fnUntraced(function* (owner, eventIds) {
    if (eventIds.length === 0) return []
    const p = parameters(dialect)
    const update = `UPDATE ${table} SET locked_at = ${dialect.now} WHERE ${claimsOf(owner, eventIds, p)}`
    if (dialect.name !== "mysql") {
      const renewed = yield* rows("renew claims", `${update} RETURNING event_id`, p.values)
      return renewed.map((row) => String(row.event_id))
    }
    yield* change("renew claims", update, p.values)
    const q = parameters(dialect)
    const still = yield* rows(
      "renew claims",
      `SELECT event_id FROM ${table} WHERE ${claimsOf(owner, eventIds, q)}`,
      q.values
    )
    return still.map((row) => String(row.event_id))
  })

  const releaseClaims: Shape["releaseClaims"] = (owner, eventIds) => {
    if (eventIds.length === 0) return Effect.succeed(0)
    const p = parameters(dialect)
    const text = `UPDATE ${table} SET locked_by = NULL, locked_at = NULL WHERE ${claimsOf(owner, eventIds, p)}`
    return change("release claims", text, p.values)
  }

  const deadRows = (filter: DeadFilter, p: Parameters): string => {
    const type = filter.eventType === undefined ? "" : ` AND event_type = ${p.bind(filter.eventType)}`
    const aggregate = filter.aggregateType === undefined ? "" : ` AND aggregate_type = ${p.bind(filter.aggregateType)}`
    return `status = ${DEAD}${type}${aggregate}`
  }

  const queryDead: Shape["queryDead"] = (filter, limit, afterSeq = 0) => {
    const p = parameters(dialect)
    const where = `${deadRows(filter, p)} AND seq > ${p.bind(afterSeq)}`
    const text = `SELECT ${eventColumns(dialect)} FROM ${table} WHERE ${where} ORDER BY seq ${limitTo(limit, p)}`
    return Effect.map(rows("query dead", text, p.values), decode)
  }

  const replayDead: Shape["replayDead"] = (eventId) => {
    const p = parameters(dialect)
    const set = `status = ${NEW}, attempts = 0, available_at = ${dialect.now}, last_error = NULL, done_at = NULL, locked_by = NULL, locked_at = NULL`
    return change(
      "replay dead",
      `UPDATE ${table} SET ${set} WHERE event_id = ${p.bind(eventId)} AND status = ${DEAD}`,
      p.values
    )
  }

  const countDead: Shape["countDead"] = (filter) => {
    const p = parameters(dialect)
    const text = `SELECT COUNT(*) AS n FROM ${table} WHERE ${deadRows(filter, p)}`
    return Effect.map(rows("count dead", text, p.values), (found) => Number(found[0]?.n ?? 0))
  }

  // A row that something else marked terminal without a time counts from its creation.
  const terminalAt = dialect.name === "mysql" ? "terminal_at" : "COALESCE(done_at, created_at)"
  const purge =
    (operation: string, where: string, order: string): Shape["purgeTerminal"] =>
    (retention, limit) => {
      const p = parameters(dialect)
      const condition = where.replace("?cutoff", () => dialect.minusMillis(dialect.now, p.bind(millis(retention))))
      const atMost = `ORDER BY ${order} ${limitTo(limit, p)}`
      const text =
        dialect.name === "mysql"
          ? `DELETE FROM ${table} WHERE ${condition} ${atMost}`
          : dialect.name === "pg"
            ? `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM ${table} WHERE ${condition} ${atMost} ${dialect.skipLocked}))`
            : `DELETE FROM ${table} WHERE seq IN (SELECT seq FROM ${table} WHERE ${condition} ${atMost})`
      return change(operation, text, p.values)
    }

  const queryTerminal: Shape["queryTerminal"] = (retention, limit) => {
    const p = parameters(dialect)
    const where = `status IN (${DONE}, ${DEAD}) AND ${terminalAt} < ${dialect.minusMillis(dialect.now, p.bind(millis(retention)))}`
    const text = `SELECT ${eventColumns(dialect)} FROM ${table} WHERE ${where} ORDER BY ${terminalAt} ${limitTo(limit, p)}`
    return Effect.map(rows("query terminal", text, p.values), decode)
  }

  const deleteTerminal: Shape["deleteTerminal"] = (eventIds) => {
    if (eventIds.length === 0) return Effect.succeed(0)
    const p = parameters(dialect)
    const where = `${p.oneOf("event_id", eventIds)} AND status IN (${DONE}, ${DEAD})`
    return change("delete terminal", `DELETE FROM ${table} WHERE ${where}`, p.values)
  }

  const lag = Effect.map(
    rows(
      "measure lag",
      `SELECT COALESCE(SUM(CASE WHEN ${pending} THEN 1 ELSE 0 END), 0) AS pending,
        COALESCE(SUM(CASE WHEN status = ${DEAD} THEN 1 ELSE 0 END), 0) AS dead,
        ${dialect.micros(dialect.now)} - MIN(CASE WHEN ${pending} AND available_at <= ${dialect.now} THEN ${dialect.micros("created_at")} END) AS age
       FROM ${table} WHERE status IN (${NEW}, ${RETRY}, ${DEAD})`,
      []
    ),
    ([row]) => ({
      pending: Number(row?.pending ?? 0),
      dead: Number(row?.dead ?? 0),
      oldestMillis: Math.max(0, Number(row?.age ?? 0) / 1000)
    })
  )

  const nextDue = Effect.map(
    rows(
      "find next due",
      `SELECT ${dialect.micros(availableAt)} - ${dialect.micros(dialect.now)} AS ahead FROM ${table}
       WHERE ${pending} AND ${availableAt} > ${dialect.now} ORDER BY ${availableAt} LIMIT 1`,
      []
    ),
    ([row]) => (row === undefined ? undefined : Math.max(0, Number(row.ahead) / 1000))
  )

  return {
    dialect,
    names,
    onDone,
    insertStatements,
    insertNew,
    markDone,
    markRetry,
    markDead,
    pollPending,
    claimPending,
    renewClaims,
    releaseClaims,
    queryDead,
    replayDead,
    countDead,
    queryTerminal,
    deleteTerminal,
    purgeTerminal: purge("purge", `status IN (${DONE}, ${DEAD}) AND ${terminalAt} < ?cutoff`, terminalAt),
    purgeByAge: purge("purge by age", "created_at < ?cutoff", "seq"),
    lag,
    nextDue
  }
}

const oldestFirst = (a: PolledEvent, b: PolledEvent): number =>
  a.availableAtMicros - b.availableAtMicros || a.seq - b.seq

/** Events whose headers could be read, and those that cannot be delivered as they are. */
export const partition = (polled: ReadonlyArray<PolledEvent>) => {
  const undecodable = polled.flatMap((p) =>
    Result.isFailure(p.envelope) ? [{ ...p, envelope: p.envelope.failure }] : []
  )
  const events = polled.flatMap((p) => (Result.isSuccess(p.envelope) ? [{ ...p, envelope: p.envelope.success }] : []))
  return { events, undecodable }
}
