/** The event envelope: how it is built, and how an envelope that somebody else built is checked. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

import { type InvalidEnvelope, PayloadTooLarge } from "../../OutboxError.ts"
import { checkId, checkText, checkTime, copyHeaders, invalid } from "./envelopeChecks.ts"
import { failureOfValue } from "./failureText.ts"
import { anyAggregateTypeName, nameOf, type TypeName } from "./typeName.ts"
import { ulid } from "./ulid.ts"

/** The largest payload in bytes, inclusive: 1 MiB (outbox seed §5, ruling 43). */
export const maxPayloadBytes = 1_048_576

/** The event as it is written, stored and delivered. It is immutable, and built by `make` (outbox seed §5). */
export interface EventEnvelope {
  /**
   * The event's unique id. Consumers deduplicate by it. 1 to 36 visible ASCII characters, and spaces between them. Default: a
   * monotonic ULID.
   */
  readonly eventId: string
  /** The kind of the event, such as `OrderPlaced`. 1 to 128 characters. */
  readonly eventType: string
  /** When the event happened, in epoch milliseconds, from 1970 to 9999. Default: now. */
  readonly occurredAtMillis: number
  /** The kind of thing that the event is about, such as `order`. 1 to 64 characters. Default `__GLOBAL__`. */
  readonly aggregateType: string
  /** The thing that the event is about. Ordered delivery keeps the order per aggregate. At most 128 characters. Default: none. */
  readonly aggregateId: string | undefined
  /** Passed through: nothing is filtered or isolated by it (outbox seed §5). At most 64 characters. Default: none. */
  readonly tenantId: string | undefined
  /** Text headers. Default: empty. */
  readonly headers: ReadonlyMap<string, string>
  /** The payload's bytes, the same in the database, on the hot path and on the cold path. A copy: treat it as read-only. */
  readonly payload: Uint8Array
  /** Default `application/json` for JSON, `application/octet-stream` for bytes. 1 to 128 characters. */
  readonly contentType: string
}

/** The input of `make`. Exactly one of `payload`, `payloadJson` and `payloadBytes` must be set (outbox seed §5). */
export interface Input {
  /** The kind of the event. 1 to 128 characters. Required. */
  readonly eventType: TypeName
  /** 1 to 36 visible ASCII characters, and spaces between them. Default: a monotonic ULID. */
  readonly eventId?: string
  /** When the event happened: a date, or epoch milliseconds. From 1970 to 9999. Default: now. */
  readonly occurredAt?: Date | number
  /** The kind of thing that the event is about. 1 to 64 characters. Default `__GLOBAL__`. */
  readonly aggregateType?: TypeName
  /** The thing that the event is about. At most 128 characters. Default: none. */
  readonly aggregateId?: string
  /** Passed through to the table and the listener. At most 64 characters. Default: none. */
  readonly tenantId?: string
  /** Text headers, copied. Default: none. A key or value that is not text is refused. */
  readonly headers?: ReadonlyMap<string, string> | Readonly<Record<string, string>>
  /** A value, stored as the text that `JSON.stringify` makes of it. At most 1 MiB. */
  readonly payload?: unknown
  /** JSON text, stored verbatim: it is neither parsed nor checked. At most 1 MiB as UTF-8. */
  readonly payloadJson?: string
  /** Bytes, copied. At most 1 MiB. */
  readonly payloadBytes?: Uint8Array
  /** The payload's media type. Default `application/json` for JSON, `application/octet-stream` for bytes. */
  readonly contentType?: string
}

/** Builds an envelope. Nothing is cut or replaced silently: it fails with `InvalidEnvelope` or `PayloadTooLarge`. */
export const make = (input: Input): Effect.Effect<EventEnvelope, InvalidEnvelope | PayloadTooLarge> =>
  Effect.flatMap(Clock.currentTimeMillis, (nowMillis) => {
    const built = build(input, nowMillis)
    return "_tag" in built ? Effect.fail(built) : Effect.succeed(built)
  })

/** Builds an envelope from an event type and JSON text (outbox seed §5). Fails as `make` does. */
export const ofJson = (
  eventType: TypeName,
  payloadJson: string
): Effect.Effect<EventEnvelope, InvalidEnvelope | PayloadTooLarge> => make({ eventType, payloadJson })

/** The payload as text. Meaningful for `application/json`. */
export const payloadJson = (envelope: EventEnvelope): string => decoder.decode(envelope.payload)

/** Checks an envelope that `make` did not build, for example one that a hook changed. */
export const checkEnvelope = (
  envelope: EventEnvelope
): Effect.Effect<EventEnvelope, InvalidEnvelope | PayloadTooLarge> => {
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

/** Envelopes that `make` built. They are frozen, so they stay valid. */
const checked = new WeakSet<EventEnvelope>()

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** Reading the input may throw, as a Proxy or a getter does: that is `InvalidEnvelope`, too. */
const build = (input: Input, nowMillis: number): EventEnvelope | InvalidEnvelope | PayloadTooLarge => {
  try {
    return read(input, nowMillis)
  } catch (cause) {
    return invalid("event", `cannot be read: ${failureOfValue(cause).summary}`)
  }
}

const read = (input: Input, nowMillis: number): EventEnvelope | InvalidEnvelope | PayloadTooLarge => {
  const eventType = nameOf(input.eventType)
  const aggregateType = input.aggregateType === undefined ? anyAggregateTypeName : nameOf(input.aggregateType)
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
    contentType:
      input.contentType ?? (input.payloadBytes === undefined ? "application/json" : "application/octet-stream")
  })
  checked.add(envelope)
  return envelope
}

const encodePayload = (input: Input): Uint8Array | InvalidEnvelope => {
  const given = [input.payload, input.payloadJson, input.payloadBytes].filter((p) => p !== undefined).length
  if (given !== 1) {
    return invalid("payload", `needs exactly one of payload, payloadJson and payloadBytes, but ${given} are set`)
  }
  if (input.payloadBytes !== undefined) {
    const isBytes = input.payloadBytes instanceof Uint8Array
    return isBytes ? Uint8Array.from(input.payloadBytes) : invalid("payloadBytes", "is no Uint8Array")
  }
  if (input.payloadJson !== undefined && typeof input.payloadJson !== "string") {
    return invalid("payloadJson", "is not text")
  }
  const text = input.payloadJson ?? stringify(input.payload)
  if (typeof text !== "string") return text
  // A lone surrogate has no UTF-8 form, and the encoder would replace it silently.
  return text.isWellFormed() ? encoder.encode(text) : invalid("payload", "contains a lone surrogate")
}

const stringify = (value: unknown): string | InvalidEnvelope => {
  try {
    const text: string | undefined = JSON.stringify(value)
    // JSON writes NaN and the infinities as null, which a reader takes for no value. Only such a text is looked at again.
    if (text?.includes("null")) JSON.stringify(value, refuseNonFinite)
    return text ?? invalid("payload", `of type ${typeof value} has no JSON form`)
  } catch (cause) {
    return invalid("payload", `has no JSON form: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

const refuseNonFinite = (_: string, value: unknown): unknown => {
  if (typeof value === "number" && !Number.isFinite(value)) throw new Error(`${value} is no number of JSON`)
  return value
}
