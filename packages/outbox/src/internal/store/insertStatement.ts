/** The insert of new rows as text and parameters, so that any SQL client can run it in its own transaction. */
import { Effect } from "effect"
import type { JsonCodec } from "../../JsonCodec.ts"
import { InvalidEnvelope } from "../../OutboxError.ts"
import { bucketOf } from "../base/bucketOf.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import { failureOfValue } from "../base/failureText.ts"
import type { Dialect } from "./dialect.ts"

/** One statement for any SQL client. */
export interface InsertStatement {
  /** The SQL, with the placeholders of its database. */
  readonly text: string
  /** The values of the placeholders, in order. */
  readonly params: ReadonlyArray<unknown>
}

/** Keeps a statement within every database's limit of parameters, and quick to parse. */
const rowsPerStatement = 200

interface Column {
  readonly name: string
  readonly value: (event: EventEnvelope, codec: JsonCodec) => unknown
}

const columns: ReadonlyArray<Column> = [
  { name: "event_id", value: (e) => e.eventId },
  { name: "event_type", value: (e) => e.eventType },
  { name: "aggregate_type", value: (e) => e.aggregateType },
  { name: "aggregate_id", value: (e) => e.aggregateId ?? null },
  { name: "tenant_id", value: (e) => e.tenantId ?? null },
  { name: "payload", value: (e) => e.payload },
  { name: "content_type", value: (e) => e.contentType },
  { name: "headers", value: (e, codec) => encodeHeaders(codec, e) },
  { name: "bucket", value: (e) => bucketOf(e) },
  { name: "occurred_at", value: (e) => e.occurredAtMillis }
]

const columnList = [
  ...columns.map((c) => c.name),
  "status, attempts, available_at, created_at, locked_by, locked_at"
].join(", ")

/** The values that are the same for every new row. */
const fixedValues = (dialect: Dialect, owner: string | undefined): string => {
  const claim = owner === undefined ? "NULL, NULL" : `${owner}, ${dialect.now}`
  return `0, 0, ${dialect.now}, ${dialect.now}, ${claim}`
}

/** The text of the headers. A codec of the user's may throw, or return something else than text: that is `InvalidEnvelope` (ruling 86). */
const encodeHeaders = (codec: JsonCodec, event: EventEnvelope): string | null => {
  let text: unknown
  try {
    text = codec.toJson(event.headers)
  } catch (error) {
    throw new InvalidEnvelope({ field: "headers", detail: `could not be encoded: ${failureOfValue(error).summary}` })
  }
  if (text === null || (typeof text === "string" && text.isWellFormed() && !text.includes("\0"))) return text
  throw new InvalidEnvelope({ field: "headers", detail: "could not be encoded: the codec returned no storable text" })
}

/** The inserts of events, in order, at most `rowsPerStatement` rows each. */
export const insertStatements = (
  dialect: Dialect,
  table: string,
  codec: JsonCodec,
  events: ReadonlyArray<EventEnvelope>,
  claimedBy: string | undefined
): ReadonlyArray<InsertStatement> => {
  const statements: Array<InsertStatement> = []
  for (let at = 0; at < events.length; at += rowsPerStatement) {
    statements.push(insertValues(dialect, table, codec, events.slice(at, at + rowsPerStatement), claimedBy))
  }
  return statements
}

const insertValues = (
  dialect: Dialect,
  table: string,
  codec: JsonCodec,
  events: ReadonlyArray<EventEnvelope>,
  claimedBy: string | undefined
): InsertStatement => {
  const params: Array<unknown> = []
  const bind = (value: unknown, name?: string): string => {
    params.push(value)
    const param = dialect.param(params.length)
    return name === "occurred_at" ? dialect.fromMillis(param) : param
  }
  const rows = events.map((event) => {
    const values = columns.map((column) => bind(column.value(event, codec), column.name))
    return `(${values.join(", ")}, ${fixedValues(dialect, claimedBy === undefined ? undefined : bind(claimedBy))})`
  })
  return { text: `INSERT INTO ${table} (${columnList}) VALUES ${rows.join(", ")}`, params }
}

/** Builds statements, with the codec's failure as a typed error. */
export const encoded = <A>(build: () => A): Effect.Effect<A, InvalidEnvelope> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(build())
    } catch (error) {
      return error instanceof InvalidEnvelope ? Effect.fail(error) : Effect.die(error)
    }
  })
