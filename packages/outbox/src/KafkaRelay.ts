/**
 * Events to Kafka: a listener for everything, over the Broker port.
 *
 * - Acknowledged before DONE (`acks=all`, idempotent producer): a crash in between sends an event twice, never loses one.
 * - A record's key is the aggregate's id, so an aggregate stays on one partition, in the order in which it is handed over. Behind
 *   `Outbox.orderedNodes` with `orderedSettings`, that is the insertion order.
 * - A record that can never be sent (too large, illegal topic, refused) makes its event DEAD at once and blocks nobody.
 * - While the cluster is down, events wait and no attempt is counted. A missing topic fails its own events only.
 */
import { Broker, type BrokerError, type ConsumerRecord } from "@eventbus/core"
import { Effect, Layer } from "effect"
import type { EventEnvelope } from "./EventEnvelope.ts"
import { fixed } from "./EventRetryPolicy.ts"
import { anyAggregateType } from "./EventType.ts"
import { type ListenerRegistry, layerAll } from "./ListenerRegistry.ts"
import { DownstreamUnavailable, PoisonEvent } from "./OutboxError.ts"

/** Headers of a relayed record. The event's own headers follow them, `traceparent` among them. */
export const headerNames = {
  eventId: "x-eventbus-event-id",
  eventType: "x-eventbus-event-type",
  aggregateType: "x-eventbus-aggregate-type",
  aggregateId: "x-eventbus-aggregate-id",
  tenantId: "x-eventbus-tenant-id",
  occurredAt: "x-eventbus-occurred-at",
  contentType: "content-type"
} as const

/** The same in binary mode of CloudEvents 1.0. */
const cloudEventNames: Readonly<Record<keyof typeof headerNames, string>> = {
  eventId: "ce_id",
  eventType: "ce_type",
  aggregateType: "ce_aggregatetype",
  aggregateId: "ce_subject",
  tenantId: "ce_tenantid",
  occurredAt: "ce_time",
  contentType: headerNames.contentType
}

export interface KafkaRelayOptions {
  /** Where an event goes. Default: a topic named like its event type. */
  readonly topic?: string | ReadonlyMap<string, string> | ((event: EventEnvelope) => string)
  /** What decides the partition. Default: the aggregate's id; without one, the record has no key and is spread. */
  readonly key?: (event: EventEnvelope) => string | null
  /** `plain`: the headers above. `cloudevents`: binary mode of CloudEvents 1.0, `ce_id` and so on. Default `plain`. */
  readonly format?: "plain" | { readonly _tag: "cloudevents"; readonly source: string }
  readonly producer?: Broker.ProducerOptions
}

/** Settings of `OrderedRelay` and `Outbox.orderedNodes` for a relay: the producer keeps the order of what it is handed at once. */
export const orderedSettings = { workerCount: 64, pipelining: 500, maxInMemory: 8000, batchSize: 1000 } as const

/** Settings of `Outbox.singleNode` and `Outbox.multiNode` for a relay: what is under way at once travels in one request. */
export const unorderedSettings = { workerCount: 500, hotQueueCapacity: 2000, coldQueueCapacity: 2000 } as const

const encoder = new TextEncoder()

/** The id that consumers deduplicate by, from a relayed record in either format. */
export const eventIdOf = (record: Pick<ConsumerRecord.ConsumerRecord, "headers">): string | undefined => {
  const header = record.headers.find((h) => h.key === headerNames.eventId || h.key === "ce_id")
  return header?.value == null ? undefined : new TextDecoder().decode(header.value)
}

const topicOf = (event: EventEnvelope, topic: KafkaRelayOptions["topic"]): string => {
  if (topic === undefined) return event.eventType
  if (typeof topic === "string") return topic
  return typeof topic === "function" ? topic(event) : (topic.get(event.eventType) ?? event.eventType)
}

type Header = NonNullable<ConsumerRecord.ProducerRecord["headers"]>[number]

/** Bytes of texts that most records share, such as the event type. */
const sharedBytes = new Map<string, Uint8Array>()
const mostSharedTexts = 1000

const encodeShared = (text: string): Uint8Array => {
  const known = sharedBytes.get(text)
  if (known !== undefined) return known
  const bytes = encoder.encode(text)
  if (sharedBytes.size < mostSharedTexts) sharedBytes.set(text, bytes)
  return bytes
}

/** In the format's own names, in this order; what the event does not have is left out. */
const ownHeaders = (event: EventEnvelope, format: NonNullable<KafkaRelayOptions["format"]>): Array<Header> => {
  const names = format === "plain" ? headerNames : cloudEventNames
  const headers: Array<Header> = []
  const add = (key: string, value: Uint8Array) => void headers.push({ key, value })
  if (format !== "plain") {
    add("ce_specversion", encodeShared("1.0"))
    add("ce_source", encodeShared(format.source))
  }
  add(names.eventId, encoder.encode(event.eventId))
  add(names.eventType, encodeShared(event.eventType))
  if (event.aggregateType !== anyAggregateType.name) add(names.aggregateType, encodeShared(event.aggregateType))
  if (event.aggregateId !== undefined) add(names.aggregateId, encoder.encode(event.aggregateId))
  if (event.tenantId !== undefined) add(names.tenantId, encoder.encode(event.tenantId))
  add(names.occurredAt, encoder.encode(new Date(event.occurredAtMillis).toISOString()))
  add(names.contentType, encodeShared(event.contentType))
  return headers
}

/** The record of an event. */
export const toRecord = (event: EventEnvelope, options: KafkaRelayOptions = {}): ConsumerRecord.ProducerRecord => {
  const headers = ownHeaders(event, options.format ?? "plain")
  for (const [key, value] of event.headers) headers.push({ key, value: encoder.encode(value) })
  const key = options.key === undefined ? (event.aggregateId ?? null) : options.key(event)
  return {
    topic: topicOf(event, options.topic),
    key: key === null ? null : encoder.encode(key),
    value: event.payload,
    headers,
    timestamp: event.occurredAtMillis
  }
}

const hopeless = new Set<BrokerError.BrokerError["_tag"]>(["RecordTooLarge", "RecordRejected", "InvalidTopic"])

/** What a failed publish means for the event. A topic that does not exist counts attempts: only its own events are concerned. */
const classify = (error: BrokerError.BrokerError): BrokerError.BrokerError | DownstreamUnavailable | PoisonEvent =>
  hopeless.has(error._tag)
    ? new PoisonEvent({ reason: error.message, cause: error })
    : error.retryable && error._tag !== "UnknownTopic"
      ? new DownstreamUnavailable({ cause: error })
      : error

/** The listener of a relay, with a producer of its own for the life of the scope. It answers where the record is. */
export const listener = Effect.fnUntraced(function* (options: KafkaRelayOptions = {}) {
  const broker = yield* Broker.Broker
  const producer = yield* broker.producer(options.producer)
  return (event: EventEnvelope) =>
    Effect.mapError(
      Effect.suspend(() => producer.send(toRecord(event, options))),
      classify
    )
})

/** A registry whose one listener publishes every event. */
export const layer = (
  options?: KafkaRelayOptions
): Layer.Layer<ListenerRegistry, BrokerError.BrokerError, Broker.Broker> =>
  Layer.unwrap(Effect.map(listener(options), layerAll))

/** A relay's retries for failures that do count, such as a missing topic: once a second. */
export const retryPolicy = fixed("1 second")
