/** Events of a caller as envelopes of the outbox. The core's publishers encode them, so that a record is the same whichever way it takes to Kafka. */
import { type Broker, BrokerError, type ConsumerRecord, Serde } from "@eventbus/core"
import { EventEnvelope, OutboxError } from "@eventbus/outbox"
import * as Effect from "effect/Effect"
import type { NamedOutboxEvent, OutboxEvent } from "../../OutboxEvent.ts"
import type { Topic } from "../../Topic.ts"
import * as Publishing from "../publishing.ts"

/** An event of whatever types. */
export type AnyEvent = OutboxEvent<unknown, unknown> | NamedOutboxEvent

type Refusal = Serde.EncodeFailure | BrokerError.BrokerError | OutboxError.InvalidEnvelope | OutboxError.PayloadTooLarge

/** All events, or the failure of the first that cannot be stored. Nothing else happens. */
export const of = (
  events: ReadonlyArray<AnyEvent>
): Effect.Effect<ReadonlyArray<EventEnvelope.EventEnvelope>, Refusal> =>
  Effect.forEach(events, (event, index) => envelopeOf(event, events.length === 1 ? undefined : index))

const envelopeOf = Effect.fnUntraced(function* (event: AnyEvent, index: number | undefined) {
  const topic: unknown = event?.topic
  if (typeof topic !== "string" && typeof (topic as Topic<unknown, unknown> | undefined)?.topic !== "string") {
    return yield* new OutboxError.InvalidEnvelope({
      field: "topic",
      detail: "is neither a text nor what defineTopic answers"
    })
  }
  const record = yield* Effect.mapError(encoded(event), indexed(index))
  const valueSerde = typeof event.topic === "string" ? undefined : event.topic.value.name
  const input = yield* inputOf(record, event, valueSerde, index)
  return yield* Effect.mapError(EventEnvelope.make(input), (error) =>
    error._tag === "InvalidEnvelope" ? rejected(record.topic, index, `'${nameOf(error.field)}' ${error.detail}`) : error
  )
})

/** The record that the publishers of core make of an event, handed to a producer that keeps it. */
const encoded = ({ topic, eventId, occurredAt, tenantId, ...message }: AnyEvent) =>
  Effect.suspend(() => {
    let kept: ConsumerRecord.ProducerRecord | undefined
    const send: Broker.Producer["send"] = (record) => {
      kept = record
      return Effect.succeed({ topic: record.topic, partition: 0, offset: 0n })
    }
    const keeper: Broker.Producer = { send, sendAll: (all) => Effect.forEach(all, send), sendEach: () => Effect.void }
    const publishing = Publishing.inTransaction(topic as Topic<unknown, unknown>, keeper).publish(message as never)
    return Effect.map(publishing, () => kept!)
  })

const indexed = (index: number | undefined) => (error: Serde.EncodeFailure | BrokerError.BrokerError) =>
  index === undefined || error._tag !== "EncodeFailure" ? error : new Serde.EncodeFailure({ ...fieldsOf(error), index })

const fieldsOf = ({ serde, path, detail, topic, part }: Serde.EncodeFailure) => ({
  ...{ serde, path, detail },
  ...(topic !== undefined && { topic }),
  ...(part !== undefined && { part })
})

/** The parts that the table has a column for. Anything else is refused: Kafka would get another record than the caller means. */
const inputOf = Effect.fnUntraced(function* (
  { topic, key, value, headers = [], partition, timestamp }: ConsumerRecord.ProducerRecord,
  { eventId, occurredAt, tenantId }: AnyEvent,
  valueSerde: string | undefined,
  index: number | undefined
) {
  const refuse = (detail: string) => rejected(topic, index, detail)
  if (value === null) return yield* refuse("a tombstone (null) has no place in the outbox; publish it after the commit")
  if (partition !== undefined) return yield* refuse("'partition' has no place in the outbox; the key chooses it")
  if (timestamp !== undefined) return yield* refuse("'timestamp' has no place in the outbox; use 'occurredAt'")
  const aggregateId = key === null ? undefined : textOf(key)
  if (key !== null && aggregateId === undefined)
    return yield* refuse("'key' is no text (UTF-8), and the outbox stores keys as text")
  const texts = new Map<string, string>()
  for (const { key: name, value: bytes } of headers) {
    const text = bytes === null ? undefined : textOf(bytes)
    if (text === undefined)
      return yield* refuse(`header '${name}' is no text (UTF-8), and the outbox stores headers as text`)
    if (texts.has(name)) return yield* refuse(`header '${name}' occurs twice, and the outbox stores each name once`)
    texts.set(name, text)
  }
  const contentType = texts.get(contentTypeName) ?? (valueSerde?.startsWith("json") === true ? json : undefined)
  texts.delete(contentTypeName)
  return {
    eventType: topic,
    // Order is kept per aggregate, so a topic that does not take records holds up no key of another one.
    ...(topic.length <= longestAggregateType && { aggregateType: topic }),
    ...(aggregateId !== undefined && { aggregateId }),
    ...(eventId !== undefined && { eventId }),
    ...(occurredAt !== undefined && { occurredAt }),
    ...(tenantId !== undefined && { tenantId }),
    ...(contentType !== undefined && { contentType }),
    headers: texts,
    payloadBytes: value
  } satisfies EventEnvelope.Input
})

const contentTypeName = "content-type"
const json = "application/json"

/** The table has a column of so many characters for it. */
const longestAggregateType = 64

const rejected = (topic: string, index: number | undefined, detail: string): BrokerError.RecordRejected =>
  new BrokerError.RecordRejected({ topic, detail: index === undefined ? detail : `event ${index}: ${detail}` })

/** The fields of an envelope by the names that the caller knows. */
const nameOf = (field: string): string => ({ eventType: "topic", aggregateId: "key" })[field] ?? field

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Undefined for bytes that are no UTF-8. */
const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}
