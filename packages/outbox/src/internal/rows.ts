/** Rows of the event table as values. */
import { Result } from "effect"
import type { EventEnvelope } from "../EventEnvelope.ts"
import type { JsonCodec } from "../JsonCodec.ts"
import { InvalidEnvelope } from "../OutboxError.ts"
import type { Dialect } from "./dialect.ts"

interface RowFacts {
  readonly eventId: string
  /** Insertion order. */
  readonly seq: number
  readonly bucket: number
  /** Failed deliveries so far. */
  readonly attempts: number
  /** The database's time of the insert, in microseconds since the epoch. */
  readonly createdAtMicros: number
  readonly availableAtMicros: number
  /** Age at the time of reading, by the database's clock, in milliseconds. */
  readonly ageMillis: number
  /** Milliseconds until the row is due, by the database's clock; 0 or less when it is. */
  readonly dueInMillis: number
  readonly lastError: string | undefined
}

/** A row that was read, with its envelope, or why that could not be decoded. */
export interface PolledEvent extends RowFacts {
  readonly envelope: Result.Result<EventEnvelope, InvalidEnvelope>
}

/** A row with a readable envelope. */
export interface OutboxEvent extends RowFacts {
  readonly envelope: EventEnvelope
}

const plainColumns =
  "seq event_id event_type aggregate_type aggregate_id tenant_id payload content_type headers attempts bucket last_error".split(
    " "
  )

/** The select list; `prefix` is a table alias with its dot. */
export const eventColumns = (dialect: Dialect, prefix = ""): string =>
  [
    ...plainColumns.map((column) => prefix + column),
    `${dialect.micros(`${prefix}created_at`)} AS created_micros`,
    `${dialect.micros(`${prefix}available_at`)} AS available_micros`,
    `${dialect.micros(`${prefix}occurred_at`)} AS occurred_micros`,
    `${dialect.micros(dialect.now)} AS now_micros`
  ].join(", ")

const textOrNull = (value: unknown): string | null => (value === null || value === undefined ? null : String(value))

const bytes = (value: unknown): Uint8Array | undefined =>
  value instanceof Uint8Array ? value : typeof value === "string" ? new TextEncoder().encode(value) : undefined

const decodeEnvelope = (
  row: Record<string, unknown>,
  eventId: string,
  codec: JsonCodec
): Result.Result<EventEnvelope, InvalidEnvelope> => {
  const payload = bytes(row.payload)
  if (payload === undefined)
    return Result.fail(new InvalidEnvelope({ field: "payload", detail: "is not stored as bytes" }))
  return Result.map(codec.parseObject(textOrNull(row.headers)), (headers) => ({
    eventId,
    eventType: String(row.event_type),
    occurredAtMillis: Math.round(Number(row.occurred_micros) / 1000),
    aggregateType: textOrNull(row.aggregate_type) ?? "__GLOBAL__",
    aggregateId: textOrNull(row.aggregate_id) ?? undefined,
    tenantId: textOrNull(row.tenant_id) ?? undefined,
    headers,
    payload,
    contentType: String(row.content_type)
  }))
}

export const decodeRow = (row: Record<string, unknown>, codec: JsonCodec): PolledEvent => {
  const eventId = String(row.event_id)
  const micros = (column: string) => Math.round(Number(row[column]))
  const [created, available, now] = [micros("created_micros"), micros("available_micros"), micros("now_micros")]
  return {
    eventId,
    seq: Number(row.seq),
    bucket: Number(row.bucket),
    attempts: Number(row.attempts),
    createdAtMicros: created,
    availableAtMicros: available,
    ageMillis: Math.max(0, (now - created) / 1000),
    dueInMillis: (available - now) / 1000,
    lastError: textOrNull(row.last_error) ?? undefined,
    envelope: decodeEnvelope(row, eventId, codec)
  }
}

/** Events whose headers could be read, and those that cannot be delivered as they are. */
export const partition = (polled: ReadonlyArray<PolledEvent>) => {
  const undecodable = polled.flatMap((p) =>
    Result.isFailure(p.envelope) ? [{ ...p, envelope: p.envelope.failure }] : []
  )
  const events = polled.flatMap((p) => (Result.isSuccess(p.envelope) ? [{ ...p, envelope: p.envelope.success }] : []))
  return { events, undecodable }
}
