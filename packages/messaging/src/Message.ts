/**
 * A message: a payload for a topic, with id, key, text headers and the time of its creation. It names no broker.
 *
 * Messages are immutable. Headers are copied when a message is made.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Topic } from "./Topic.ts"

/** Text headers by name. */
export type Headers = Readonly<Record<string, string>>

/** A message to send. */
export interface Message<T> {
  /** A UUID, generated when the message is made. It travels in header `message-id`. */
  readonly id: string
  /** The content. */
  readonly payload: T
  /** The destination. */
  readonly topic: Topic<T>
  /** Kafka: chooses the partition, and so the order. RabbitMQ: the routing key. Undefined: none. */
  readonly key: string | undefined
  /** Further headers. Never undefined, may be empty. */
  readonly headers: Headers
  /** When the message was made, in epoch milliseconds. */
  readonly timestamp: number
}

/** A message as a consumer gets it. */
export interface ReceivedMessage<T> extends Message<T> {
  /** The group that reads it. */
  readonly groupId: string
  /** Which try of this message it is, over all retries, from 1. A message that comes again after a crash may repeat a number. */
  readonly attempt: number
  /** Kafka: the partition that it was first in. Undefined on a broker without partitions. */
  readonly partition: number | undefined
  /** Kafka: the offset that it was first at. Undefined on a broker without offsets. */
  readonly offset: bigint | undefined
}

/** Header with the id of the message. */
export const idHeader = "message-id"

/** No headers. */
export const noHeaders: Headers = Object.freeze({})

/** A message with a generated id and the present time. Without a key it is spread over the partitions. */
export const of = <T>(
  payload: NoInfer<T>,
  topic: Topic<T>,
  key?: string,
  headers?: Headers
): Effect.Effect<Message<T>> => Effect.map(Clock.currentTimeMillis, (now) => at(now, payload, topic, key, headers))

/** A message with a generated id and the given time, in epoch milliseconds. */
export const at = <T>(
  timestamp: number,
  payload: NoInfer<T>,
  topic: Topic<T>,
  key?: string,
  headers?: Headers
): Message<T> =>
  Object.freeze({
    id: globalThis.crypto.randomUUID(),
    payload,
    topic,
    key,
    headers: headers === undefined ? noHeaders : Object.freeze({ ...headers }),
    timestamp
  })

/** A copy for another topic of the same payloads; the original stays as it is. */
export const withTopic = <T>(message: Message<T>, topic: Topic<T>): Message<T> => Object.freeze({ ...message, topic })

/** A copy with another key; the original stays as it is. */
export const withKey = <T>(message: Message<T>, key: string | undefined): Message<T> =>
  Object.freeze({ ...message, key })
