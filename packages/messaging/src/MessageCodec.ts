/**
 * Messages to bytes and back, for brokers that carry bytes and text headers. (Kafka's records are written and read by the core.)
 */
import type { Header } from "@eventbus/core/ConsumerRecord"
import * as Failures from "@eventbus/core/Failures"
import * as Serde from "@eventbus/core/Serde"
import * as UserFunction from "@eventbus/core/UserFunction"
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

/** Encodes a payload, once. A serde that throws, or answers something else than bytes, is a failure. */
export const encode = <T>({
  topic,
  payload,
  headers
}: Message<T>): Result.Result<EncodedMessage, Serde.EncodeFailure> => {
  try {
    return Result.map(resultOf("encode", topic.payload.encode(payload)), (body) => {
      if (body !== null && !(body instanceof Uint8Array)) {
        throw new TypeError(`encode answered ${UserFunction.kindOf(body)}; a Uint8Array is expected`)
      }
      const needed = topic.payload.headers?.(payload) ?? []
      const texts = needed.map(({ key, value }) => [key, value === null ? "" : decoder.decode(value)] as const)
      return { body, headers: { ...headers, ...Object.fromEntries(texts) } }
    })
  } catch (thrown) {
    return Result.fail(new Serde.EncodeFailure(broken(topic, thrown)))
  }
}

/** Where a message came from, as its broker knows it. */
export interface Origin extends Omit<ReceivedMessage<unknown>, "payload" | "topic" | "id"> {
  /** The id where the message has none of its own: it should name the message for good. */
  readonly fallbackId: string
}

/** Decodes a message, once. A serde that throws, or answers something else than a result, is a failure. */
export const decode = <T>(
  topic: Topic<T>,
  body: Uint8Array | null,
  { fallbackId, ...origin }: Origin
): Result.Result<ReceivedMessage<T>, Serde.DecodeFailure> => {
  try {
    const decoded = resultOf("decode", topic.payload.decode(body, { headers: recordHeaders(origin.headers) }))
    return Result.map(decoded, (payload) => ({
      ...origin,
      ...{ payload, topic, id: origin.headers[idHeader] ?? fallbackId }
    }))
  } catch (thrown) {
    return Result.fail(new Serde.DecodeFailure(broken(topic, thrown)))
  }
}

const resultOf = <A, E>(what: string, answered: Result.Result<A, E>): Result.Result<A, E> => {
  if (Result.isResult(answered)) return answered
  throw new TypeError(`${what} returned ${UserFunction.kindOf(answered)}; a Result is expected`)
}

const broken = ({ payload }: { readonly payload: { readonly name: string } }, thrown: unknown) => {
  const { className, message } = Failures.fromUnknown(thrown)
  return { serde: payload.name, path: "", detail: `${className} ${message}` }
}

const recordHeaders = (headers: Headers): ReadonlyArray<Header> =>
  Object.entries(headers).map(([key, value]) => ({ key, value: encoder.encode(value) }))

const encoder = new TextEncoder()
const decoder = new TextDecoder()
