/**
 * A destination of messages with the type of its payloads. Producers and consumers take topics instead of names, so the compiler refuses a payload of another type.
 *
 * ```ts
 * import { Topic } from "@eventbus/messaging"
 * import { Schema } from "effect"
 *
 * class Email extends Schema.Class<Email>("Email")({ to: Schema.String, subject: Schema.String }) {}
 *
 * export const emails = Topic.json("emails", Email)
 * ```
 *
 * On Kafka it is a topic, on RabbitMQ an exchange with a queue for each group that reads it.
 */
import * as Kinds from "@eventbus/core/Kinds"
import * as Serde from "@eventbus/core/Serde"
import type * as Schema from "effect/Schema"

/** A named destination, and how its payloads are written. */
export interface Topic<in out T> {
  /** The name, as the broker knows it, without the prefixes that a broker adds by itself. */
  readonly name: string
  /** Writes and reads the payload. Runs once for each message, in the producer and in the consumer. */
  readonly payload: Serde.Serde<T>
}

/** The settings of a topic that does not exist yet. A broker without the notion of a setting leaves it out. */
export interface TopicDeclaration {
  /** The name of the topic. */
  readonly name: string
  /** Kafka: partitions, 1 or more. Default: `messaging.kafka.defaultPartitions`, which is 3. */
  readonly partitions?: number
  /** Kafka: replicas of each partition, 1 or more. Default: `messaging.kafka.defaultReplicationFactor`, which is 1. */
  readonly replicationFactor?: number
  /** How long messages are kept, in milliseconds. Default: `messaging.kafka.defaultRetentionMs`, which is 7 days. */
  readonly retentionMillis?: number
}

/** A topic with a serde of your own, such as `Avro` or `TypeId.serde`. Throws `ConfigurationValidation` for an empty name and for what is no serde. */
export const make = <T>(name: string, payload: Serde.Serde<T>): Topic<T> => {
  Kinds.refuse([...Kinds.name("Topic.make: name", name), ...Kinds.serde("Topic.make: payload", payload)])
  return { name, payload }
}

/** A topic whose payloads are JSON, checked against a schema. Throws `ConfigurationValidation` for an empty name and for what is no schema. */
export const json = <A, I>(name: string, schema: Schema.Codec<A, I>): Topic<A> => make(name, Serde.json(schema))

/** The same payloads under another name, such as the name of a dead letter topic. */
export const named = <T>(topic: Topic<T>, name: string): Topic<T> => make(name, topic.payload)
