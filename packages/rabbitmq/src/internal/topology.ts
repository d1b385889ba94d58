/**
 * The exchanges and queues of topics and consumers, and how they are declared. Declaring again what exists changes nothing.
 *
 * - A topic is a durable topic exchange. A message's routing key is its key.
 * - A group of a topic has a quorum queue that is bound to all keys.
 * - Each wait of a retry has a quorum queue of its own, whose messages expire back into the group's queue: RabbitMQ looks at the head of a queue only, so a message would wait behind
 *   longer waits. It belongs to one queue: where that one is missing, no other group's messages wait behind it.
 * - The dead letters of a topic have an exchange and one queue.
 *
 * Messages expire by at-least-once dead-lettering, which needs `reject-publish`: RabbitMQ keeps the message in the one queue until the next one has confirmed it.
 */
import type { Channel, ChannelModel } from "amqplib"
import * as Failures from "./failures.ts"
import { isDeadLetterTopic, type Names, retryQueue } from "./names.ts"
import type { Settings } from "./settings.ts"

/** The needs of a consumer of one topic. */
export interface GroupPlan {
  readonly topic: string
  readonly queue: string
  /** The topic of its dead letters. */
  readonly letters: string
  /** The distinct waits of its retries in milliseconds. */
  readonly waits: ReadonlyArray<number>
}

/** Runs requests on a channel of their own, since a request that RabbitMQ refuses closes its channel. Rejects with `RabbitMqError`. */
export const onChannel = async <A>(model: ChannelModel, requests: (channel: Channel) => Promise<A>): Promise<A> => {
  try {
    const channel = await model.createChannel()
    // The request that failed says the same.
    channel.on("error", () => {})
    const answer = await requests(channel)
    await channel.close()
    return answer
  } catch (error) {
    throw Failures.ofChannel(error)
  }
}

/** Declares the exchange. */
export const declareExchange = (channel: Channel, exchange: string): Promise<unknown> =>
  channel.assertExchange(exchange, "topic", { durable: true })

/** Declares a topic, and for a dead letter topic its queue, too. */
export const declareTopic = async (channel: Channel, names: Names, topic: string): Promise<void> => {
  await declareExchange(channel, names.exchange(topic))
  if (isDeadLetterTopic(topic)) await declareDeadLetters(channel, names, topic)
}

/** A dead letter stays until somebody acknowledges it, however often it is looked at: RabbitMQ 4 would drop it after 20 looks. */
const unlimitedDeliveries = 2_147_483_647

const declareDeadLetters = async (channel: Channel, names: Names, topic: string): Promise<void> => {
  const queue = names.deadLetters(topic)
  await channel.assertQueue(queue, quorum({ "x-delivery-limit": unlimitedDeliveries }))
  await channel.bindQueue(queue, names.exchange(topic), "#")
}

/** Declares what a consumer of the topic needs. The group's queue is bound last, when all that its messages may need exists. */
export const declareGroup = async (
  channel: Channel,
  names: Names,
  settings: Settings,
  { topic, queue, letters, waits }: GroupPlan
): Promise<void> => {
  await declareTopic(channel, names, letters)
  await declareTopic(channel, names, topic)
  if (!isDeadLetterTopic(topic)) {
    await channel.assertQueue(queue, groupQueue(settings, names.deadLetters(letters)))
  }
  for (const wait of waits) await channel.assertQueue(retryQueue(queue, wait), waitingQueue(wait, queue))
  if (!isDeadLetterTopic(topic)) await channel.bindQueue(queue, names.exchange(topic), "#")
}

const quorum = (settings: Readonly<Record<string, unknown>>) => ({
  durable: true,
  arguments: { "x-queue-type": "quorum", ...settings }
})

/** Leaves a queue for another one, at least once. */
const deadLetteringTo = (queue: string) => ({
  "x-dead-letter-exchange": "",
  "x-dead-letter-routing-key": queue,
  "x-dead-letter-strategy": "at-least-once",
  "x-overflow": "reject-publish"
})

/** RabbitMQ itself dead-letters only what this package cannot: what was delivered too often, and what cannot be copied. */
const groupQueue = ({ deliveryLimit, maxQueueLength }: Settings, deadLetters: string) =>
  quorum({
    ...deadLetteringTo(deadLetters),
    "x-delivery-limit": deliveryLimit,
    ...(maxQueueLength !== undefined && { "x-max-length": maxQueueLength })
  })

const waitingQueue = (wait: number, queue: string) => quorum({ ...deadLetteringTo(queue), "x-message-ttl": wait })
