/** Records as the Kafka client of Nest has them. */
import type { EventBus, KafkaDelivery } from "@eventbus/node"
import type { KafkaParser } from "@nestjs/microservices"
import type { ContextArgs } from "../EventBusContext.ts"

type Message = ContextArgs[0]

/** Where the record was first, through all retry topics. */
export const originOf = ({ deduplicationKey, record }: KafkaDelivery<unknown, unknown>) => {
  const [, topic, partition, offset] = /^(.*)-(\d+)-(\d+)$/.exec(deduplicationKey) ?? []
  return {
    topic: topic ?? record.topic,
    partition: Number(partition ?? record.partition),
    offset: offset ?? String(record.offset)
  }
}

/** The message as Nest's own parser reads it. */
export const parsed = (parser: KafkaParser, topic: string, delivery: KafkaDelivery<unknown, unknown>): Message => {
  const { record, headers } = delivery
  const { partition, offset } = originOf(delivery)
  return parser.parse<Message>({
    magicByte: 2,
    attributes: 0,
    timestamp: String(record.timestamp),
    offset,
    key: bufferOf(record.key),
    value: bufferOf(record.value),
    headers: Object.fromEntries(headers.map(({ key, value }) => [key, bufferOf(value)])),
    topic,
    partition
  })
}

const bufferOf = (bytes: Uint8Array | null): Buffer | null =>
  bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The consumer of a context. The connector commits when the handler has ended, so a commit by hand has nothing left to do. */
export const consumerOf = (): ContextArgs[3] =>
  refusing("getConsumer()", { commitOffsets: () => Promise.resolve() }) as unknown as ContextArgs[3]

interface Sent {
  readonly topic: string
  readonly messages: ReadonlyArray<{
    readonly key?: Buffer | string | null
    readonly value: Buffer | string | null
    readonly headers?: { readonly [name: string]: Buffer | string }
    readonly partition?: number
  }>
}

/** The producer of a context. */
export const producerOf = (bus: EventBus): ContextArgs[5] =>
  refusing("getProducer()", {
    send: ({ topic, messages }: Sent) =>
      bus.publishAll(
        topic,
        messages.map(({ key = null, ...rest }) => ({ ...rest, key }))
      )
  }) as unknown as ContextArgs[5]

/** An object that says what it has not. */
const refusing = (name: string, members: { readonly [name: string]: unknown }): object =>
  new Proxy(members, {
    get: (_, member) => {
      // Printing it, and asking whether it is a promise, is no mistake.
      if (typeof member === "symbol" || member in members || member === "then") return members[String(member)]
      const allowed = Object.keys(members).join(", ")
      throw new TypeError(
        `${name}.${member}: the connector has no such member here; it has ${allowed}. Inject EventBusService.`
      )
    }
  })
