/**
 * An event as it is written, stored and delivered. Immutable; the payload is encoded once and stays byte for byte the same in
 * the database, on the hot path and on the cold path.
 */
import { Clock, Effect } from "effect"
import { anyAggregateType, nameOf, type TypeName } from "./EventType.ts"
import { ulid } from "./internal/base/ulid.ts"
import { InvalidEnvelope, PayloadTooLarge } from "./OutboxError.ts"

/** Most bytes of a payload: 1 MiB, inclusive. */
export const maxPayloadBytes = 1_048_576

export const jsonContentType = "application/json"
export const bytesContentType = "application/octet-stream"

export interface EventEnvelope {
  /** 1 to 36 ASCII characters without control characters, and without a space at either end. Default: a monotonic ULID. Consumers deduplicate by it. */
  readonly eventId: string
  /** At most 128 characters. */
  readonly eventType: string
  /** Epoch milliseconds at which the event happened. Default: now. */
  readonly occurredAtMillis: number
  /** At most 64 characters. Default `__GLOBAL__`. */
  readonly aggregateType: string
  /** At most 128 characters; what order is kept by. Default: none. */
  readonly aggregateId: string | undefined
  /** At most 64 characters, passed through: nothing is filtered or isolated by it. Default: none. */
  readonly tenantId: string | undefined
  readonly headers: ReadonlyMap<string, string>
  /** The payload's bytes. A copy: treat as read-only. */
  readonly payload: Uint8Array
  /** `application/json` for JSON text, `application/octet-stream` for bytes, unless given. */
  readonly contentType: string
}

/** What a caller gives. Exactly one of `payload`, `payloadJson` and `payloadBytes` must be there. */
export interface Input {
  readonly eventType: TypeName
  readonly eventId?: string
  readonly occurredAt?: Date | number
  readonly aggregateType?: TypeName
  readonly aggregateId?: string
  readonly tenantId?: string
  readonly headers?: ReadonlyMap<string, string> | Readonly<Record<string, string>>
  /** A value to store as `JSON.stringify` gives it. */
  readonly payload?: unknown
  /** JSON text, stored verbatim: it is neither parsed nor checked. */
  readonly payloadJson?: string
  readonly payloadBytes?: Uint8Array
  readonly contentType?: string
}

/** Builds an envelope. Fails with `InvalidEnvelope` or `PayloadTooLarge`; nothing is cut or replaced silently. */
export const make = (input: Input): Effect.Effect<EventEnvelope, InvalidEnvelope | PayloadTooLarge> =>
  Effect.flatMap(Clock.currentTimeMillis, (nowMillis) => {
    const made = build(input, nowMillis)
    return "_tag" in made ? Effect.fail(made) : Effect.succeed(made)
  })

/** Shorthand: an event type and JSON text. */
export const ofJson = (eventType: TypeName, payloadJson: string) => make({ eventType, payloadJson })

/** The payload as text, for `application/json`. */
export const payloadJson = (envelope: EventEnvelope): string => decoder.decode(envelope.payload)

/** Checks an envelope that did not come from `make`, for example one that a hook changed. */
export const check = (envelope: EventEnvelope): Effect.Effect<EventEnvelope, InvalidEnvelope | PayloadTooLarge> => {
  if (checked.has(envelope)) return Effect.succeed(envelope)
  const { payload, occurredAtMillis, aggregateId, tenantId, ...rest } = envelope
  return make({
    ...rest,
    payloadBytes: payload,
    occurredAt: occurredAtMillis,
    ...(aggregateId === undefined ? {} : { aggregateId }),
    ...(tenantId === undefined ? {} : { tenantId })
  })
}

/** Envelopes that `make` built; frozen, so that they stay valid. */
const checked = new WeakSet<EventEnvelope>()

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

const build = (input: Input, nowMillis: number): EventEnvelope | InvalidEnvelope | PayloadTooLarge => {
  const eventType = nameOf(input.eventType)
  const aggregateType = input.aggregateType === undefined ? anyAggregateType.name : nameOf(input.aggregateType)
  const occurredAtMillis = Number(input.occurredAt ?? nowMillis)
  const payload = encodePayload(input)
  if ("_tag" in payload) return payload
  if (payload.length > maxPayloadBytes) {
    return new PayloadTooLarge({ eventType, bytes: payload.length, maxBytes: maxPayloadBytes })
  }
  const headers = copyHeaders(input.headers)
  if ("_tag" in headers) return headers
  const issue =
    checkText("eventType", eventType, 128) ??
    checkId(input.eventId) ??
    checkText("aggregateType", aggregateType, 64) ??
    checkText("aggregateId", input.aggregateId, 128, "may be empty") ??
    checkText("tenantId", input.tenantId, 64, "may be empty") ??
    checkText("contentType", input.contentType, 128) ??
    checkTime(occurredAtMillis)
  if (issue !== undefined) return issue
  const envelope = Object.freeze({
    eventId: input.eventId ?? ulid(nowMillis),
    eventType,
    occurredAtMillis: Math.trunc(occurredAtMillis),
    aggregateType,
    aggregateId: input.aggregateId,
    tenantId: input.tenantId,
    headers,
    payload,
    contentType: input.contentType ?? (input.payloadBytes === undefined ? jsonContentType : bytesContentType)
  })
  checked.add(envelope)
  return envelope
}

/** MySQL and JavaScript agree on years up to 9999. */
const latestMillis = Date.UTC(9999, 11, 31)

const checkTime = (millis: number): InvalidEnvelope | undefined =>
  millis >= 0 && millis <= latestMillis
    ? undefined
    : invalid("occurredAt", "is not a time between the years 1970 and 9999")

const invalid = (field: string, detail: string): InvalidEnvelope => new InvalidEnvelope({ field, detail })

const encodePayload = (input: Input): Uint8Array | InvalidEnvelope => {
  const given = [input.payload, input.payloadJson, input.payloadBytes].filter((p) => p !== undefined).length
  if (given !== 1) {
    return invalid("payload", `needs exactly one of payload, payloadJson and payloadBytes, but ${given} are set`)
  }
  if (input.payloadBytes !== undefined) return Uint8Array.from(input.payloadBytes)
  const text = input.payloadJson ?? stringify(input.payload)
  if (typeof text !== "string") return text
  // A lone surrogate has no UTF-8 form: encoding would replace it without a word.
  return text.isWellFormed() ? encoder.encode(text) : invalid("payload", "contains a lone surrogate")
}

const stringify = (value: unknown): string | InvalidEnvelope => {
  try {
    const text: string | undefined = JSON.stringify(value)
    return text ?? invalid("payload", `of type ${typeof value} has no JSON form`)
  } catch (cause) {
    return invalid("payload", `has no JSON form: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

const checkText = (
  field: string,
  text: string | undefined,
  maxLength: number,
  emptiness: "may be empty" | "not empty" = "not empty"
): InvalidEnvelope | undefined => {
  if (text === undefined) return undefined
  if (typeof text !== "string") return invalid(field, "is not text")
  if (text.length === 0 && emptiness === "not empty") return invalid(field, "is empty")
  if (text.length > maxLength) return invalid(field, `has ${text.length} characters; at most ${maxLength} are allowed`)
  if (text.includes("\0")) return invalid(field, "contains a NUL character, which no database text can hold")
  return text.isWellFormed() ? undefined : invalid(field, "contains a lone surrogate")
}

/** Whether a text can be the id of an event: what every database keeps and tells apart. MySQL ignores spaces at the end of a key. */
export const isEventId = (text: string): boolean => text.length <= 36 && /^[!-~]([ -~]*[!-~])?$/.test(text)

const checkId = (id: string | undefined): InvalidEnvelope | undefined =>
  checkText("eventId", id, 36) ??
  (id === undefined || isEventId(id)
    ? undefined
    : invalid(
        "eventId",
        `is ${JSON.stringify(id)}; only visible ASCII characters, and spaces between them, are allowed`
      ))

const copyHeaders = (input: Input["headers"]): ReadonlyMap<string, string> | InvalidEnvelope => {
  const headers = new Map<string, string>()
  if (input === undefined) return headers
  const entries: Iterable<readonly [unknown, unknown]> = input instanceof Map ? input : Object.entries(input)
  for (const [key, value] of entries) {
    if (typeof key !== "string") return invalid("headers", "has a key that is not text")
    if (typeof value !== "string") return invalid("headers", `has a value under '${key}' that is not text`)
    const issue = checkText(`headers.${key}`, key + value, Number.MAX_SAFE_INTEGER, "may be empty")
    if (issue !== undefined) return issue
    headers.set(key, value)
  }
  return headers
}
