/** The events that `outbox.write` takes: a message as `publish` takes it, with its topic. */
import type { Publisher } from "@eventbus/core"
import type { EventEnvelope } from "@eventbus/outbox"
import type { TextOrBytes, Topic } from "./Topic.ts"

/** The parts of an event beside its topic and key. */
export interface EventParts<V> extends Pick<EventEnvelope.Input, "eventId" | "occurredAt" | "tenantId"> {
  /** The value. Stored as its serde writes it, at most 1 MiB. The outbox stores no tombstones. */
  readonly value: V
  /** Headers, each name once, with values that are text. `content-type` says what the value is. Default: `application/json` for the serdes of JSON, else `application/octet-stream`. */
  readonly headers?: Publisher.Headers
}

/** An event for a topic of `defineTopic`. Its key is stored as text (UTF-8), at most 128 characters; records of one topic and key stay in order. */
export type OutboxEvent<K, V> = Publisher.KeyOf<NoInfer<K>> &
  EventParts<NoInfer<V>> & {
    /** The topic, with the serdes of its keys and values. Its name has at most 128 characters. */
    readonly topic: Topic<K, V>
  }

/** An event for a topic by its name. Keys and values are text or bytes. */
export type NamedOutboxEvent = Publisher.KeyOf<TextOrBytes> &
  EventParts<TextOrBytes> & {
    /** The name of the topic, at most 128 characters. */
    readonly topic: string
  }
