/** The insert of new rows as text and parameters, so that any SQL client can run it in its own transaction. */
import { UserFunction } from "@eventbus/core"
import * as Effect from "effect/Effect"
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

/**
 * The most bytes of one statement, except for a single event that is larger. Clients that send parameters as text may double them. So a
 * statement stays below the 16 MiB that MariaDB accepts by default (`max_allowed_packet`).
 */
const bytesPerStatement = 2 * 1_048_576

/** The most bytes of an event's headers as text. With the largest payload, a row stays within `bytesPerStatement`. */
const maxHeadersBytes = 1_048_576 - 4096

/** Bytes of a row beside payload and headers, at most, as far as the limit of a statement is concerned. */
const rowOverheadBytes = 1024

interface Column {
  readonly name: string
  readonly value: (event: EventEnvelope, headers: string | null) => unknown
}

const columns: ReadonlyArray<Column> = [
  { name: "event_id", value: (e) => e.eventId },
  { name: "event_type", value: (e) => e.eventType },
  { name: "aggregate_type", value: (e) => e.aggregateType },
  { name: "aggregate_id", value: (e) => e.aggregateId ?? null },
  { name: "tenant_id", value: (e) => e.tenantId ?? null },
  { name: "payload", value: (e) => e.payload },
  { name: "content_type", value: (e) => e.contentType },
  { name: "headers", value: (_, headers) => headers },
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
    text = UserFunction.settled("toJson of the codec", codec.toJson(event.headers))
  } catch (error) {
    throw new InvalidEnvelope({ field: "headers", detail: `could not be encoded: ${failureOfValue(error).summary}` })
  }
  if (typeof text === "string" && Buffer.byteLength(text) > maxHeadersBytes) {
    const detail = `take ${Buffer.byteLength(text)} bytes as text; at most ${maxHeadersBytes} are allowed`
    throw new InvalidEnvelope({ field: "headers", detail })
  }
  if (text === null || (typeof text === "string" && text.isWellFormed() && !text.includes("\0"))) return text
  throw new InvalidEnvelope({ field: "headers", detail: "could not be encoded: the codec returned no storable text" })
}

/** The values of one row, in the order of `columns`, and their size. */
interface Row {
  readonly values: ReadonlyArray<unknown>
  readonly bytes: number
}

const rowOf = (event: EventEnvelope, codec: JsonCodec): Row => {
  const headers = encodeHeaders(codec, event)
  const bytes = event.payload.length + (headers === null ? 0 : Buffer.byteLength(headers)) + rowOverheadBytes
  return { values: columns.map(({ value }) => value(event, headers)), bytes }
}

/** Rows in groups of one statement each, in order. */
const grouped = (rows: ReadonlyArray<Row>): ReadonlyArray<ReadonlyArray<Row>> => {
  const groups: Array<Array<Row>> = []
  let bytes = 0
  for (const row of rows) {
    const group = groups.at(-1)
    if (group === undefined || group.length >= rowsPerStatement || bytes + row.bytes > bytesPerStatement) {
      groups.push([row])
      bytes = row.bytes
    } else {
      group.push(row)
      bytes += row.bytes
    }
  }
  return groups
}

/** The inserts of events, in order, each within the limits of rows and bytes. Every event is encoded before the first is returned. */
export const insertStatements = (
  dialect: Dialect,
  table: string,
  codec: JsonCodec,
  events: ReadonlyArray<EventEnvelope>,
  claimedBy: string | undefined
): ReadonlyArray<InsertStatement> =>
  grouped(events.map((event) => rowOf(event, codec))).map((rows) => insertValues(dialect, table, rows, claimedBy))

const insertValues = (
  dialect: Dialect,
  table: string,
  rows: ReadonlyArray<Row>,
  claimedBy: string | undefined
): InsertStatement => {
  const params: Array<unknown> = []
  const bind = (value: unknown, name?: string): string => {
    params.push(value)
    const param = dialect.param(params.length)
    return name === "occurred_at" ? dialect.fromMillis(param) : param
  }
  const tuples = rows.map(({ values }) => {
    const bound = values.map((value, i) => bind(value, columns[i]!.name))
    return `(${bound.join(", ")}, ${fixedValues(dialect, claimedBy === undefined ? undefined : bind(claimedBy))})`
  })
  return { text: `INSERT INTO ${table} (${columnList}) VALUES ${tuples.join(", ")}`, params }
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
