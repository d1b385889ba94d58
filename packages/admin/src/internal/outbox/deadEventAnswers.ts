/**
 * Turns what an outbox says of its dead events into answers that JSON can hold. Without `payload`, nothing in them quotes an event.
 */
import { Serde } from "@eventbus/core"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Answers from "../../DeadEventAnswers.ts"
import type { Payload } from "../../Mask.ts"
import type * as Port from "../../OutboxPort.ts"
import { given, isDate, isoOf } from "../answersOf.ts"
import { textOf } from "../masking.ts"
import { type Decoded, payloadOf } from "../payloadAnswers.ts"

const timeOf = (micros: number): string => isoOf(Math.floor(micros / 1_000))

/** The texts of errors are `ClassName: message`, or what somebody has thrown: a word alone may be that. */
const isClass = (text: string): boolean => /^[A-Za-z_$][\w$.]*$/.test(text)

export const groupsOf = (
  { groups, other }: { readonly groups: ReadonlyArray<Port.DeadEventGroup>; readonly other: number },
  payload: Payload
): Answers.Groups => ({ groups: groups.map((group) => groupOf(group, payload)), other })

const groupOf = (group: Port.DeadEventGroup, payload: Payload): Answers.Group => {
  const { fingerprint, eventType, errorClass, message, count, firstMicros, lastMicros, samples } = group
  const isKnown = message !== "" && isClass(errorClass)
  return {
    ...{ fingerprint, eventType, count, samples },
    ...given("errorClass", isKnown ? errorClass : textOf(payload, errorClass || undefined)),
    ...given("message", textOf(payload, message || undefined)),
    ...{ first: timeOf(firstMicros), last: timeOf(lastMicros) }
  }
}

export const pageOf = (
  { events, next }: { readonly events: ReadonlyArray<Port.DeadEvent>; readonly next: string | undefined },
  payload: Payload
): Answers.Page => ({ events: events.map((event) => summaryOf(event, payload)), ...given("next", next) })

/** The class that the text of an error begins with, and its message. */
const errorOf = (lastError: string): { readonly className?: string; readonly message: string } => {
  const [, className = "", message = ""] = /^(\S{1,128}): (.*)$/s.exec(lastError) ?? []
  return isClass(className) ? { className, message } : { message: lastError }
}

const summaryOf = (event: Port.DeadEvent, payload: Payload): Answers.Summary => {
  const { eventId, eventType, group, aggregateType, attempts, createdAtMicros, diedAtMicros } = event
  return {
    ...{ eventId, eventType, group, aggregateType, attempts },
    ...given("aggregateId", textOf(payload, event.aggregateId)),
    ...given("tenantId", textOf(payload, event.tenantId)),
    ...given("errorClass", errorOf(event.lastError ?? "").className),
    ...given("lastError", textOf(payload, event.lastError)),
    ...{ createdAt: timeOf(createdAtMicros), diedAt: timeOf(diedAtMicros) }
  }
}

export const eventOf = (event: Port.DeadEventDetail, payload: Payload): Answers.Event => {
  const { envelope, unreadable } = event
  const { occurredAtMillis, contentType } = envelope
  return {
    ...summaryOf(event, payload),
    ...given("occurredAt", isDate(occurredAtMillis) ? isoOf(occurredAtMillis) : undefined),
    ...{ contentType, decodable: unreadable === undefined },
    ...given("unreadable", textOf(payload, unreadable?.reason)),
    ...given("payload", payload === false ? undefined : contentOf(event, payload))
  }
}

const json = Serde.json(Schema.Unknown)

const isJson = (contentType: string): boolean => /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType)

/** The id of the aggregate is the key that a relay gives the record, and the type of the event its topic. */
const contentOf = (event: Port.DeadEventDetail, payload: Exclude<Payload, false>): Answers.Event["payload"] => {
  const { aggregateId, envelope, eventType, lastError } = event
  const value: Decoded = isJson(envelope.contentType) ? json.decode(envelope.payload) : Result.succeed(envelope.payload)
  const { className = "", message } = errorOf(lastError ?? "")
  return payloadOf(
    {
      topic: eventType,
      key: {
        bytes: aggregateId === undefined ? null : new TextEncoder().encode(aggregateId),
        decoded: Result.succeed(aggregateId ?? null)
      },
      value: { bytes: envelope.payload, decoded: value },
      headers: Array.from(envelope.headers, ([name, text]) => ({ name, value: text })),
      causes: lastError === undefined ? [] : [{ className, message }]
    },
    payload
  )
}

const selectionOf = ({ aggregateId, ...select }: Port.Selection, payload: Payload): Answers.Selection => ({
  ...select,
  ...given("aggregateId", textOf(payload, aggregateId))
})

/** A selection as the audit log has it: without the id of an aggregate. */
export const targetOf = (select: Port.Selection): Answers.Selection => selectionOf(select, false)

/** Ids in the preview of a plan. */
const mostOfSample = 20

export const planOf = (
  plan: Port.Plan,
  { by, createdMillis }: { readonly by: string; readonly createdMillis: number },
  payload: Payload
): Answers.Plan => {
  const { id, action, reason, count, rate, canary, canaryWaitMillis, stopAbove, further, select, events } = plan
  return {
    ...{ id, action, reason, by, count, rate, canary, canaryWaitMillis, stopAbove, further },
    select: selectionOf(select, payload),
    sample: events.slice(0, mostOfSample).map(([eventId]) => eventId),
    created: isoOf(createdMillis)
  }
}
