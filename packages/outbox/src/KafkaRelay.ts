/**
 * Relays events to Kafka: one listener for every event, over the Broker port.
 *
 * - An event is DONE after all replicas have acknowledged its record (`acks=all`, idempotent producer). A crash in between sends an event
 *   twice, and never loses one.
 * - A record's key is the aggregate's id. So an aggregate stays on one partition, in the order in which it is handed over. Behind
 *   `Outbox.orderedNodes` with `orderedSettings`, that is the insertion order.
 * - A record that can never be sent (too large, illegal topic, refused) makes its event DEAD at once and delays no other event.
 * - While the cluster is down, events wait and no attempt is counted. While a topic is missing, or this user may not write to it, only the
 *   events of that topic wait (`missingTopics`).
 */
import { Adapter, Broker, type BrokerError, type ConsumerRecord, UserFunction } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { EventEnvelope } from "./EventEnvelope.ts"
import { type EventRetryPolicy, fixed } from "./EventRetryPolicy.ts"
import { checkOptions, problemsOf } from "./internal/base/options.ts"
import { anyAggregateTypeName } from "./internal/base/typeName.ts"
import { relayKinds } from "./internal/relay/relayKinds.ts"
import { type MissingTopics, RelayTopics } from "./internal/relay/relayTopics.ts"
import { type ListenerRegistry, layerAll } from "./ListenerRegistry.ts"
import type { DownstreamUnavailable, InvalidOutboxConfig, PoisonEvent } from "./OutboxError.ts"

/**
 * The headers of a relayed record in format `plain`. The event's own headers follow them, `traceparent` among them, except those that have one of the relay's own names in
 * the record's format.
 */
export const headerNames = {
  eventId: "x-eventbus-event-id",
  eventType: "x-eventbus-event-type",
  aggregateType: "x-eventbus-aggregate-type",
  aggregateId: "x-eventbus-aggregate-id",
  tenantId: "x-eventbus-tenant-id",
  occurredAt: "x-eventbus-occurred-at",
  contentType: "content-type"
} as const

const connectorPrefix = "x-eventbus-"

/** The same headers in binary mode of CloudEvents 1.0. */
const cloudEventNames: Readonly<Record<keyof typeof headerNames, string>> = {
  eventId: "ce_id",
  eventType: "ce_type",
  aggregateType: "ce_aggregatetype",
  aggregateId: "ce_subject",
  tenantId: "ce_tenantid",
  occurredAt: "ce_time",
  contentType: headerNames.contentType
}

/** The headers that only the relay writes, by format. An event's own header of such a name would be read in place of the relay's. */
const plainNames: ReadonlySet<string> = new Set(Object.values(headerNames))
const cloudNames: ReadonlySet<string> = new Set([...Object.values(cloudEventNames), "ce_specversion", "ce_source"])

/** Settings of a relay. */
export interface KafkaRelayOptions {
  /**
   * The topic of an event: one for all, one per event type, or a function. A function that gives no text fails the delivery. Default: the topic named like the event
   * type.
   */
  readonly topic?: string | ReadonlyMap<string, string> | ((event: EventEnvelope) => string)
  /**
   * The record's key, which decides the partition. A function that gives neither a text nor null fails the delivery. Default: the aggregate's id; without one, the record
   * has no key and is spread.
   */
  readonly key?: (event: EventEnvelope) => string | null
  /** The names of the headers. `plain`: `headerNames`. `cloudevents`: binary mode of CloudEvents 1.0 (`ce_id` and so on). Default `plain`. */
  readonly format?:
    | "plain"
    | {
        readonly _tag: "cloudevents"
        /** The value of `ce_source`: a URI of the producing service. */
        readonly source: string
      }
  /**
   * How the relay deals with a missing topic. `wait` (default) keeps its events until somebody creates it. `create` creates it, with the
   * cluster's partition count and replication. `require` checks at the start that the topics of `topic` exist, where `topic` is a text or
   * a map, and waits afterwards. An event that waits uses up no attempt, and the events of other topics go on.
   */
  readonly missingTopics?: MissingTopics
  /**
   * The timestamp of a record. `published` (default): the time of publishing, so that a topic's retention counts from then. `occurred`: the
   * event's own time; a topic that refuses it gets the time of publishing instead, and the log says so. Header `occurredAt` has the event's
   * own time in either case (ruling 76).
   */
  readonly timestamp?: "published" | "occurred"
  /** Settings of the relay's own producer. Default: those of the broker. */
  readonly producer?: Broker.ProducerOptions
}

/** Settings of `OrderedRelay` and `Outbox.orderedNodes` for a relay. Pipelining is safe: the producer keeps the order of its sends. */
export const orderedSettings = { workerCount: 64, pipelining: 500, maxInMemory: 8000, batchSize: 1000 } as const

/** Settings of `Outbox.singleNode` and `Outbox.multiNode` for a relay: records that are sent at the same time share a request. */
export const unorderedSettings = { workerCount: 500, hotQueueCapacity: 2000, coldQueueCapacity: 2000 } as const

const encoder = new TextEncoder()

/** The event id that consumers deduplicate by, from a relayed record in either format. Undefined for other records. */
export const eventIdOf = (record: Pick<ConsumerRecord.ConsumerRecord, "headers">): string | undefined => {
  const header = record.headers.find((h) => h.key === headerNames.eventId || h.key === "ce_id")
  return header?.value == null ? undefined : new TextDecoder().decode(header.value)
}

const topicOf = (event: EventEnvelope, topic: KafkaRelayOptions["topic"]): string => {
  if (topic === undefined) return event.eventType
  if (typeof topic === "string") return topic
  return typeof topic === "function"
    ? answer("topic of the relay", topic(event), "a topic name", isName)
    : (topic.get(event.eventType) ?? event.eventType)
}

const isName = (value: unknown): boolean => typeof value === "string" && value !== ""
const isKey = (value: unknown): boolean => value === null || typeof value === "string"

/** Any other value would become a text of its own, the same one for all events: `undefined` would be the key `""`. */
const answer = <A>(what: string, given: A, expected: string, isAllowed: (value: unknown) => boolean): A => {
  const value = UserFunction.plain(what, given, expected)
  if (isAllowed(value)) return value
  throw new TypeError(`${what} returned ${UserFunction.kindOf(value)}; ${expected} is expected`)
}

type Header = NonNullable<ConsumerRecord.ProducerRecord["headers"]>[number]

/** The encoded form of texts that most records share, such as the event type. */
const sharedBytes = new Map<string, Uint8Array>()
const mostSharedTexts = 1000

const encodeShared = (text: string): Uint8Array => {
  const known = sharedBytes.get(text)
  if (known !== undefined) return known
  const bytes = encoder.encode(text)
  if (sharedBytes.size < mostSharedTexts) sharedBytes.set(text, bytes)
  return bytes
}

/** The relay's own headers, in the names of the format and in this order. Fields that the event lacks have no header. */
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
  if (event.aggregateType !== anyAggregateTypeName) add(names.aggregateType, encodeShared(event.aggregateType))
  if (event.aggregateId !== undefined) add(names.aggregateId, encoder.encode(event.aggregateId))
  if (event.tenantId !== undefined) add(names.tenantId, encoder.encode(event.tenantId))
  add(names.occurredAt, encoder.encode(new Date(event.occurredAtMillis).toISOString()))
  add(names.contentType, encodeShared(event.contentType))
  return headers
}

/** The record of an event. A record without a timestamp gets the time of publishing. */
export const toRecord = (event: EventEnvelope, options: KafkaRelayOptions = {}): ConsumerRecord.ProducerRecord => {
  const headers = ownHeaders(event, options.format ?? "plain")
  const reserved = options.format === undefined || options.format === "plain" ? plainNames : cloudNames
  for (const [key, value] of event.headers) {
    // A handler that writes an event may have forwarded the headers of its record: those describe that record, and the relay's own would be overridden.
    if (!key.startsWith(connectorPrefix) && !reserved.has(key)) headers.push({ key, value: encoder.encode(value) })
  }
  const key =
    options.key === undefined
      ? (event.aggregateId ?? null)
      : answer("key of the relay", options.key(event), "a text or null", isKey)
  return {
    topic: topicOf(event, options.topic),
    key: key === null ? null : encoder.encode(key),
    value: event.payload,
    headers,
    ...(options.timestamp === "occurred" ? { timestamp: event.occurredAtMillis, replaceTimestamp: true } : {})
  }
}

/** The topics that are known before the first event. */
const topicsKnown = (topic: KafkaRelayOptions["topic"]): ReadonlyArray<string> => {
  if (topic === undefined || typeof topic === "function") return []
  return typeof topic === "string" ? [topic] : [...new Set(topic.values())]
}

/**
 * The listener of a relay, with a producer of its own for the life of the scope. It returns the record's position. It fails with
 * `PoisonEvent` when the record can never be sent, and with `DownstreamUnavailable` while the cluster is down or the topic is missing.
 * Building it fails with `UnknownTopic` when `missingTopics` is `require` and a topic does not exist, and with `InvalidOutboxConfig` for wrong settings.
 */
export const listener: (
  options?: KafkaRelayOptions
) => Effect.Effect<
  (
    event: EventEnvelope
  ) => Effect.Effect<ConsumerRecord.RecordMetadata, BrokerError.BrokerError | DownstreamUnavailable | PoisonEvent>,
  BrokerError.BrokerError | InvalidOutboxConfig,
  Broker.Broker | Scope.Scope
> = Effect.fnUntraced(function* (options = {}) {
  yield* checkOptions("KafkaRelay", [problemsOf(options, relayKinds)])
  if (options.producer !== undefined) yield* Adapter.checkOptions("producer", options.producer)
  const broker = yield* Broker.Broker
  const { missingTopics = "wait" } = options
  const topics = new RelayTopics(broker, missingTopics, yield* Clock.Clock)
  if (missingTopics === "require") yield* topics.require(topicsKnown(options.topic))
  const producer = yield* broker.producer(options.producer)
  return (event: EventEnvelope) => Effect.suspend(() => topics.publish(toRecord(event, options), producer.send))
})

/** A registry whose only listener publishes every event. Fails as `listener` does. */
export const layer = (
  options?: KafkaRelayOptions
): Layer.Layer<ListenerRegistry, BrokerError.BrokerError | InvalidOutboxConfig, Broker.Broker> =>
  Layer.unwrap(Effect.map(listener(options), layerAll))

/** The retry policy of a relay for failures that count attempts, such as one that Kafka does not explain: one delivery per second. */
export const retryPolicy: EventRetryPolicy = fixed("1 second")
