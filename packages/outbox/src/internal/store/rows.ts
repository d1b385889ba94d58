/** Rows of the event table as values. */
import { UserFunction } from "@eventbus/core"
import * as Result from "effect/Result"
import type { JsonCodec } from "../../JsonCodec.ts"
import { InvalidEnvelope } from "../../OutboxError.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import { failureOfValue } from "../base/failureText.ts"
import { anyAggregateTypeName } from "../base/typeName.ts"
import type { Dialect } from "./dialect.ts"

/** The columns of a row that can always be read. */
interface RowColumns {
  /** The event's unique id. */
  readonly eventId: string
  /** The row's number in insertion order. */
  readonly seq: number
  /** The bucket of the row's aggregate, 0 to 63. */
  readonly bucket: number
  /** Failed deliveries so far. */
  readonly attempts: number
  /** The database's time of the insert, in microseconds since the epoch. */
  readonly createdAtMicros: number
  /** When the row is due, in microseconds since the epoch. */
  readonly availableAtMicros: number
  /** Age at the time of reading, by the database's clock, in milliseconds. */
  readonly ageMillis: number
  /** Milliseconds until the row is due, by the database's clock; 0 or less when it is. */
  readonly dueInMillis: number
  /** The error of the last failed delivery; undefined when none failed. */
  readonly lastError: string | undefined
  /** The holder of the row's claim, or of its handover from one node to another; undefined when there is none. */
  readonly lockedBy: string | undefined
  /** Age of that claim in milliseconds, by the database's clock. 0 when there is none. */
  readonly lockedMillis: number
  /** PostgreSQL's address (`ctid`) of the row version that was read; undefined elsewhere. A hint for marking, valid until the row changes. */
  readonly rowAddress: string | undefined
}

/** A row that was read: its envelope, or the reason why it could not be decoded. */
export interface PolledEvent extends RowColumns {
  /** The decoded event, or why decoding failed. */
  readonly envelope: Result.Result<EventEnvelope, InvalidEnvelope>
  /** Of a row that could not be decoded: what is known of it. Undefined for every other row. */
  readonly known?: KnownParts
}

/** The reason why a row could not be decoded, and its raw parts. */
export interface Unreadable {
  /** Why decoding failed, as a sentence. */
  readonly reason: string
  /** The stored text of the headers; null when there is none. */
  readonly rawHeaders: string | null
}

/** All that is known of a row that could not be decoded. */
interface KnownParts extends Unreadable {
  /** The event with every column that can be read: without headers when these are broken, with an empty payload when that is. */
  readonly envelope: EventEnvelope
}

/** A row as an event. */
export interface OutboxEvent extends RowColumns {
  /** The event. Of a row that could not be decoded: what is known of it, see `unreadable`. */
  readonly envelope: EventEnvelope
  /** Set for a row that could not be decoded: its envelope lacks the headers, and the payload when that is broken. Undefined otherwise. */
  readonly unreadable?: Unreadable
}

const plainColumns =
  "seq event_id event_type aggregate_type aggregate_id tenant_id payload content_type headers attempts bucket last_error locked_by".split(
    " "
  )

/** A row as the values of `eventColumns`. Column names would cost an object per row, and a client may rename them. */
export type EventRow = ReadonlyArray<unknown>

/** The select list, in the order of `position`; `prefix` is a table alias with its dot. */
export const eventColumns = (dialect: Dialect, prefix = ""): string =>
  [
    ...plainColumns.map((column) => prefix + column),
    ...["created_at", "available_at", "occurred_at", "locked_at"].map((column) => dialect.micros(prefix + column)),
    dialect.micros(dialect.now),
    dialect.name === "pg" ? `${prefix}ctid::text` : "NULL"
  ].join(", ")

/** Positions in the select list. */
const position = {
  ...{ seq: 0, eventId: 1, eventType: 2, aggregateType: 3, aggregateId: 4, tenantId: 5, payload: 6, contentType: 7 },
  ...{
    headers: 8,
    attempts: 9,
    bucket: 10,
    lastError: 11,
    lockedBy: 12,
    created: 13,
    available: 14,
    occurred: 15,
    lockedAt: 16,
    now: 17,
    rowAddress: 18
  }
} as const

const textOrNull = (value: unknown): string | null => (value === null || value === undefined ? null : String(value))

const bytes = (value: unknown): Uint8Array | undefined =>
  value instanceof Uint8Array ? value : typeof value === "string" ? new TextEncoder().encode(value) : undefined

const decodeEnvelope = (
  row: EventRow,
  eventId: string,
  codec: JsonCodec
): Result.Result<EventEnvelope, InvalidEnvelope> => {
  const payload = bytes(row[position.payload])
  if (payload === undefined)
    return Result.fail(new InvalidEnvelope({ field: "payload", detail: "is not stored as bytes" }))
  const headers = parseHeaders(codec, textOrNull(row[position.headers]))
  return Result.isSuccess(headers)
    ? Result.succeed(envelopeOf(row, eventId, headers.success, payload))
    : Result.fail(headers.failure)
}

const envelopeOf = (
  row: EventRow,
  eventId: string,
  headers: ReadonlyMap<string, string>,
  payload: Uint8Array
): EventEnvelope => ({
  eventId,
  eventType: String(row[position.eventType]),
  occurredAtMillis: Math.round(Number(row[position.occurred]) / 1000),
  aggregateType: textOrNull(row[position.aggregateType]) ?? anyAggregateTypeName,
  aggregateId: textOrNull(row[position.aggregateId]) ?? undefined,
  tenantId: textOrNull(row[position.tenantId]) ?? undefined,
  headers,
  payload,
  contentType: String(row[position.contentType])
})

/** The known parts of a row that could not be decoded. A payload in a form that is not bytes becomes its text. */
const knownParts = (row: EventRow, eventId: string, codec: JsonCodec, failure: InvalidEnvelope): KnownParts => {
  const rawHeaders = textOrNull(row[position.headers])
  const stored = row[position.payload]
  const payload = bytes(stored) ?? bytes(textOrNull(stored)) ?? new Uint8Array(0)
  const headers = Result.getOrElse(parseHeaders(codec, rawHeaders), () => new Map<string, string>())
  return { reason: failure.message, rawHeaders, envelope: envelopeOf(row, eventId, headers, payload) }
}

/** A codec of the user's may throw, or return something else than its type says (ruling 86). */
const parseHeaders = (
  codec: JsonCodec,
  text: string | null
): Result.Result<ReadonlyMap<string, string>, InvalidEnvelope> => {
  const malformed = (detail: string) => Result.fail(new InvalidEnvelope({ field: "headers", detail }))
  try {
    const parsed: unknown = codec.parseObject(text)
    if (!Result.isResult(parsed)) {
      UserFunction.settled("parseObject of the codec", parsed)
      return malformed("could not be decoded: the codec returned no Result")
    }
    if (Result.isSuccess(parsed)) {
      return parsed.success instanceof Map
        ? Result.succeed(parsed.success)
        : malformed("could not be decoded: the codec returned no Map")
    }
    return malformed(
      parsed.failure instanceof InvalidEnvelope
        ? parsed.failure.detail
        : `could not be decoded: ${failureOfValue(parsed.failure).summary}`
    )
  } catch (error) {
    return malformed(`could not be decoded: ${failureOfValue(error).summary}`)
  }
}

/** Decodes a row that was read with `eventColumns`. */
export const decodeRow = (row: EventRow, codec: JsonCodec): PolledEvent => {
  const eventId = String(row[position.eventId])
  const created = Math.round(Number(row[position.created]))
  const available = Math.round(Number(row[position.available]))
  const now = Math.round(Number(row[position.now]))
  const envelope = decodeEnvelope(row, eventId, codec)
  return {
    eventId,
    seq: Number(row[position.seq]),
    bucket: Number(row[position.bucket]),
    attempts: Number(row[position.attempts]),
    createdAtMicros: created,
    availableAtMicros: available,
    ageMillis: Math.max(0, (now - created) / 1000),
    dueInMillis: (available - now) / 1000,
    lastError: textOrNull(row[position.lastError]) ?? undefined,
    lockedBy: textOrNull(row[position.lockedBy]) ?? undefined,
    lockedMillis:
      row[position.lockedAt] == null ? 0 : Math.max(0, (now - Math.round(Number(row[position.lockedAt]))) / 1000),
    rowAddress: textOrNull(row[position.rowAddress]) ?? undefined,
    envelope,
    ...(Result.isFailure(envelope) ? { known: knownParts(row, eventId, codec, envelope.failure) } : undefined)
  }
}

/** All rows as events, in the given order. A row that could not be decoded has what is known of it, and `unreadable`. */
export const toOutboxEvents = (polled: ReadonlyArray<PolledEvent>): ReadonlyArray<OutboxEvent> =>
  polled.map(({ known, envelope, ...columns }): OutboxEvent => {
    if (Result.isSuccess(envelope)) return { ...columns, envelope: envelope.success }
    // A store of the user's may lack the known parts of a row.
    const parts = known ?? {
      reason: envelope.failure.message,
      rawHeaders: null,
      envelope: nothingKnown(columns.eventId)
    }
    return { ...columns, envelope: parts.envelope, unreadable: { reason: parts.reason, rawHeaders: parts.rawHeaders } }
  })

const nothingKnown = (eventId: string): EventEnvelope => ({
  eventId,
  eventType: "",
  occurredAtMillis: 0,
  aggregateType: anyAggregateTypeName,
  aggregateId: undefined,
  tenantId: undefined,
  headers: new Map(),
  payload: new Uint8Array(0),
  contentType: ""
})

/** A row that cannot be delivered as it is, and why. */
export interface UndecodableEvent extends RowColumns {
  /** Why decoding failed. */
  readonly envelope: InvalidEnvelope
}

/** Separates rows that can be delivered from rows that could not be decoded. */
export const separateUndecodable = (
  polled: ReadonlyArray<PolledEvent>
): {
  /** Rows with a decoded envelope, in the given order. */
  readonly events: ReadonlyArray<OutboxEvent>
  /** Rows that cannot be delivered, in the given order. */
  readonly undecodable: ReadonlyArray<UndecodableEvent>
} => {
  const events: Array<OutboxEvent> = []
  const undecodable: Array<UndecodableEvent> = []
  for (const row of polled) {
    if (Result.isSuccess(row.envelope)) events.push({ ...row, envelope: row.envelope.success })
    else undecodable.push({ ...row, envelope: row.envelope.failure })
  }
  return { events, undecodable }
}
