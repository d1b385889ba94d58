/**
 * Messages to bytes and back, for brokers that carry bytes and text headers. (Kafka's records are written and read by the core.)
 */
import type { Header } from "@eventbus/core/ConsumerRecord"
import type { DecodeFailure, EncodeFailure } from "@eventbus/core/Serde"
import * as Result from "effect/Result"
import { type Headers, idHeader, type Message, type ReceivedMessage } from "./Message.ts"
import type { Topic } from "./Topic.ts"

/** A message as bytes. */
export interface EncodedMessage {
  /** The payload; null is a tombstone. */
  readonly body: Uint8Array | null
  /** The headers of the message, and those that its payload needs to be read. */
  readonly headers: Headers
}

/** Encodes a payload, once. */
export const encode = <T>({ topic, payload, headers }: Message<T>): Result.Result<EncodedMessage, EncodeFailure> =>
  Result.map(topic.payload.encode(payload), (body) => {
    const needed = topic.payload.headers?.(payload) ?? []
    const texts = needed.map(({ key, value }) => [key, value === null ? "" : decoder.decode(value)] as const)
    return { body, headers: { ...headers, ...Object.fromEntries(texts) } }
  })

/** Where a message came from, as its broker knows it. */
export interface Origin extends Omit<ReceivedMessage<unknown>, "payload" | "topic" | "id"> {
  /** The id where the message has none of its own: it should name the message for good. */
  readonly fallbackId: string
}

/** Decodes a message, once. */
export const decode = <T>(
  topic: Topic<T>,
  body: Uint8Array | null,
  { fallbackId, ...origin }: Origin
): Result.Result<ReceivedMessage<T>, DecodeFailure> =>
  Result.map(topic.payload.decode(body, { headers: recordHeaders(origin.headers) }), (payload) => ({
    ...origin,
    ...{ payload, topic, id: origin.headers[idHeader] ?? fallbackId }
  }))

const recordHeaders = (headers: Headers): ReadonlyArray<Header> =>
  Object.entries(headers).map(([key, value]) => ({ key, value: encoder.encode(value) }))

const encoder = new TextEncoder()
const decoder = new TextDecoder()
