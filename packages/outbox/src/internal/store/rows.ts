/** Rows of the event table as values. */
import { Result } from "effect"
import type { EventEnvelope } from "../../EventEnvelope.ts"
import type { JsonCodec } from "../../JsonCodec.ts"
import { InvalidEnvelope } from "../../OutboxError.ts"
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
  /** PostgreSQL's address of the row version that was read; undefined elsewhere. A hint for marking, valid until the row changes. */
  readonly rowAddress: string | undefined
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

/** A row as the values of `eventColumns`: names would cost an object per row, and depend on what a client makes of them. */
export type EventRow = ReadonlyArray<unknown>

/** The select list, in the order of `at`; `prefix` is a table alias with its dot. */
export const eventColumns = (dialect: Dialect, prefix = ""): string =>
  [
    ...plainColumns.map((column) => prefix + column),
    ...["created_at", "available_at", "occurred_at"].map((column) => dialect.micros(prefix + column)),
    dialect.micros(dialect.now),
    dialect.name === "pg" ? `${prefix}ctid::text` : "NULL"
  ].join(", ")

/** Positions in the select list. */
const at = {
  ...{ seq: 0, eventId: 1, eventType: 2, aggregateType: 3, aggregateId: 4, tenantId: 5, payload: 6, contentType: 7 },
  ...{
    headers: 8,
    attempts: 9,
    bucket: 10,
    lastError: 11,
    created: 12,
    available: 13,
    occurred: 14,
    now: 15,
    place: 16
  }
} as const

export const eventIdOf = (row: EventRow): string => String(row[at.eventId])

const textOrNull = (value: unknown): string | null => (value === null || value === undefined ? null : String(value))

const bytes = (value: unknown): Uint8Array | undefined =>
  value instanceof Uint8Array ? value : typeof value === "string" ? new TextEncoder().encode(value) : undefined

const decodeEnvelope = (
  row: EventRow,
  eventId: string,
  codec: JsonCodec
): Result.Result<EventEnvelope, InvalidEnvelope> => {
  const payload = bytes(row[at.payload])
  if (payload === undefined)
    return Result.fail(new InvalidEnvelope({ field: "payload", detail: "is not stored as bytes" }))
  return Result.map(codec.parseObject(textOrNull(row[at.headers])), (headers) => ({
    eventId,
    eventType: String(row[at.eventType]),
    occurredAtMillis: Math.round(Number(row[at.occurred]) / 1000),
    aggregateType: textOrNull(row[at.aggregateType]) ?? "__GLOBAL__",
    aggregateId: textOrNull(row[at.aggregateId]) ?? undefined,
    tenantId: textOrNull(row[at.tenantId]) ?? undefined,
    headers,
    payload,
    contentType: String(row[at.contentType])
  }))
}

export const decodeRow = (row: EventRow, codec: JsonCodec): PolledEvent => {
  const eventId = eventIdOf(row)
  const created = Math.round(Number(row[at.created]))
  const available = Math.round(Number(row[at.available]))
  const now = Math.round(Number(row[at.now]))
  return {
    eventId,
    seq: Number(row[at.seq]),
    bucket: Number(row[at.bucket]),
    attempts: Number(row[at.attempts]),
    createdAtMicros: created,
    availableAtMicros: available,
    ageMillis: Math.max(0, (now - created) / 1000),
    dueInMillis: (available - now) / 1000,
    lastError: textOrNull(row[at.lastError]) ?? undefined,
    rowAddress: textOrNull(row[at.place]) ?? undefined,
    envelope: decodeEnvelope(row, eventId, codec)
  }
}

/** A row that cannot be delivered as it is, and why. */
export type UndecodableEvent = RowFacts & { readonly envelope: InvalidEnvelope }

/** Events whose headers could be read, and those that cannot be delivered as they are. */
export const separateUndecodable = (polled: ReadonlyArray<PolledEvent>) => {
  const events: Array<OutboxEvent> = []
  const undecodable: Array<UndecodableEvent> = []
  for (const row of polled) {
    if (Result.isSuccess(row.envelope)) events.push({ ...row, envelope: row.envelope.success })
    else undecodable.push({ ...row, envelope: row.envelope.failure })
  }
  return { events, undecodable }
}
