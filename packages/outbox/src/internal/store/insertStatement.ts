/** The insert of new rows as text and parameters, so that any SQL client can run it in its own transaction. */
import type { JsonCodec } from "../../JsonCodec.ts"
import { bucketOf } from "../base/bucketOf.ts"
import type { EventEnvelope } from "../base/envelope.ts"
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
  { name: "headers", value: (e, codec) => codec.toJson(e.headers) },
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
