/** Messages as RabbitMQ keeps them, and back. */
import type { DecodeFailure, EncodeFailure } from "@eventbus/core/Serde"
import { idHeader, type Message, type ReceivedMessage } from "@eventbus/messaging/Message"
import * as MessageCodec from "@eventbus/messaging/MessageCodec"
import type { Topic } from "@eventbus/messaging/Topic"
import type { ConsumeMessage, Options } from "amqplib"
import * as Result from "effect/Result"
import type { RabbitMqError } from "../RabbitMqError.ts"
import * as Failures from "./failures.ts"
import * as HeaderTable from "./headers.ts"
import { type Names, retryQueue, retryQueues } from "./names.ts"
import type { Outgoing } from "./publisher.ts"

/** The longest short string of AMQP, in bytes: routing keys, names of exchanges and queues, names of headers. */
const maxShortBytes = 255

const isTooLong = (text: string): boolean => text.length > maxShortBytes / 3 && Buffer.byteLength(text) > maxShortBytes

/** A message to the exchange of its topic. Fails for a payload that its topic refuses, and for what AMQP cannot carry. */
export const outgoingOf = <T>(
  message: Message<T>,
  names: Names
): Result.Result<Outgoing, EncodeFailure | RabbitMqError> => {
  const { id, key = "", topic, timestamp } = message
  if (isTooLong(key)) return tooLong("the key, which is the routing key,", key)
  const exchange = names.exchange(topic.name)
  if (isTooLong(exchange)) return tooLong("the name of the exchange", exchange)
  const encoded = MessageCodec.encode(message)
  if (Result.isFailure(encoded)) return Result.fail(encoded.failure)
  const { body, headers } = encoded.success
  const reserved = HeaderTable.routing.find((name) => name in headers)
  if (reserved !== undefined) {
    const why = `header '${reserved}' is reserved: RabbitMQ sends copies of the message to the keys in it. Choose another name.`
    return Result.fail(Failures.failure("Unencodable", why))
  }
  const table: Record<string, unknown> = { ...headers, [HeaderTable.names.timestamp]: timestamp }
  if (body === null) table[HeaderTable.names.tombstone] = true
  return Result.succeed({
    ...{ exchange, routingKey: key },
    content: body === null ? nothing : Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    options: { ...fixed, messageId: id, timestamp: Math.floor(timestamp / 1_000), headers: table }
  })
}

/** Kept on disk, and returned when no queue takes it. */
const fixed = { persistent: true, mandatory: true } as const

const nothing = Buffer.alloc(0)

const tooLong = (what: string, text: string): Result.Result<never, RabbitMqError> => {
  const why = `${what} has ${Buffer.byteLength(text)} bytes; AMQP carries at most ${maxShortBytes}.`
  return Result.fail(Failures.failure("Unencodable", why))
}

/** A message as it came, with what is needed to copy it. */
export interface Incoming {
  readonly id: string
  readonly key: string | undefined
  /** Which try it is, from 1. */
  readonly attempt: number
  readonly timestamp: number
  readonly message: ConsumeMessage
}

/** Reads all but the payload. `now` is the time of a message that brings none. */
export const incomingOf = (message: ConsumeMessage, now: number): Incoming => {
  const { fields, properties } = message
  const { headers = {} } = properties
  const isRetry = isOfRetryQueue(message)
  const key: unknown = isRetry ? headers[HeaderTable.names.key] : fields.exchange === "" ? undefined : fields.routingKey
  const id: unknown = headers[idHeader] ?? properties.messageId
  return {
    id: isShortText(id) ? id : globalThis.crypto.randomUUID(),
    key: isShortText(key) ? key : undefined,
    attempt: isRetry ? attemptOf(headers[HeaderTable.names.attempt]) : 1,
    timestamp: HeaderTable.timestampOf(properties) ?? now,
    message
  }
}

/** Whether RabbitMQ moved the message here from a retry queue of this queue. Another sender's headers say nothing: anybody may send to a queue by its name. */
const isOfRetryQueue = ({ fields, properties: { headers = {} } }: ConsumeMessage): boolean => {
  const deaths: unknown = headers["x-death"]
  const last: unknown = Array.isArray(deaths) ? deaths[0] : undefined
  if (fields.exchange !== "" || typeof last !== "object" || last === null) return false
  const { queue, reason } = last as Record<string, unknown>
  return reason === "expired" && typeof queue === "string" && queue.startsWith(retryQueues(fields.routingKey))
}

/** A text that AMQP carries as a routing key, and as the id of a message. */
const isShortText = (value: unknown): value is string => typeof value === "string" && value !== "" && !isTooLong(value)

const attemptOf = (value: unknown): number =>
  Number.isSafeInteger(value) && (value as number) >= 1 ? (value as number) : 1

/** Decodes the payload. */
export const decode = <T>(
  topic: Topic<T>,
  groupId: string,
  { id, key, attempt, timestamp, message }: Incoming
): Result.Result<ReceivedMessage<T>, DecodeFailure> => {
  const { headers = {} } = message.properties
  const body = headers[HeaderTable.names.tombstone] === true && message.content.length === 0 ? null : message.content
  return MessageCodec.decode(topic, body, {
    ...{ key, attempt, timestamp, groupId, fallbackId: id, headers: HeaderTable.texts(headers) },
    ...{ partition: undefined, offset: undefined }
  })
}

/** A copy for the queue in which it waits before its next try. */
export const retryCopy = (incoming: Incoming, queue: string, wait: number): Outgoing => {
  const { names } = HeaderTable
  const own = {
    [names.attempt]: incoming.attempt + 1,
    ...(incoming.key !== undefined && { [names.key]: incoming.key })
  }
  return { exchange: "", routingKey: retryQueue(queue, wait), ...copyOf(incoming, own) }
}

/** A copy for an exchange, such as that of dead letters, with further headers. */
export const copyTo = (incoming: Incoming, exchange: string, further: HeaderTable.Table): Outgoing => ({
  exchange,
  routingKey: incoming.key ?? "",
  ...copyOf(incoming, further)
})

/** Payload bytes, headers and properties stay as they are. An expiry and a sender's checked user would make RabbitMQ drop or refuse the copy. */
const copyOf = ({ id, timestamp, message }: Incoming, further: HeaderTable.Table) => {
  const { headers = {}, ...properties } = message.properties
  const { expiration: _, userId: __, deliveryMode: ___, clusterId: ____, ...kept } = properties
  const isTombstone = headers[HeaderTable.names.tombstone] === true
  const options: Options.Publish & { readonly messageId: string } = {
    ...definedOnly(kept),
    ...fixed,
    messageId: id,
    headers: {
      ...HeaderTable.carriedOver(headers),
      ...further,
      [HeaderTable.names.timestamp]: timestamp,
      ...(isTombstone && { [HeaderTable.names.tombstone]: true })
    }
  }
  return { content: message.content, options }
}

const definedOnly = (properties: object): object =>
  Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== undefined))
