/**
 * The RabbitMQ of the tests: the local one, unless `RABBITMQ_TEST` names another. Where logging in does not work, its suites are skipped, as those of a database are.
 *
 * Each test has names under a prefix of its own, and deletes them.
 */
import type { MessageBroker } from "@eventbus/messaging/MessageBroker"
import type * as MessageConsumer from "@eventbus/messaging/MessageConsumer"
import { RabbitMq } from "@eventbus/rabbitmq"
import { type Channel, type ChannelModel, connect, type GetMessage } from "amqplib"
import { Effect, Exit, Redacted, type Scope } from "effect"
import { loginFrom, problemOf, type Service } from "../../../test/services/login.ts"
import { whenUsable } from "../../../test/services/suites.ts"
import { deadLetterTopic, makeNames, retryQueue } from "../src/internal/names.ts"

const login = loginFrom("RABBITMQ_TEST", { host: "127.0.0.1", port: 5672, username: "guest", database: "/" })

const { host, port, username, password = Redacted.make("guest"), database } = login

/** Options that reach the RabbitMQ of the tests. */
export const reachable: RabbitMq.Options = { hosts: [`${host}:${port}`], username, password, vhost: database }

const connection = (): Promise<ChannelModel> =>
  connect({ hostname: host, port, username, password: Redacted.value(password), vhost: encodeURIComponent(database) })

const service: Service = {
  name: "RabbitMQ",
  variable: "RABBITMQ_TEST",
  example: "amqp://user:password@host:5672/vhost",
  login
}

const problem = await problemOf(
  service,
  Effect.promise(async () => (await connection()).close())
)

/** Runs the suite on RabbitMQ. */
export const onRabbitMq = (title: string, suite: () => void): void => whenUsable(`${title} on RabbitMQ`, problem, suite)

/** Requests on a channel of its own, as another client or an operator would make them. Fails with what RabbitMQ says. */
export const asOperator = <A>(requests: (channel: Channel) => Promise<A>): Effect.Effect<A> =>
  Effect.promise(async () => {
    const model = await connection()
    model.on("error", () => {})
    try {
      const channel = await model.createChannel()
      channel.on("error", () => {})
      const answer = await requests(channel)
      // All that the requests sent has arrived once the channel is closed.
      await channel.close()
      return answer
    } finally {
      await model.close()
    }
  })

/** All messages of a queue, the oldest first. They stay there. */
export const letters = (queue: string): Effect.Effect<ReadonlyArray<GetMessage>> =>
  asOperator(async (channel) => {
    const all: Array<GetMessage> = []
    for (;;) {
      const next = await channel.get(queue)
      if (next === false) return all
      all.push(next)
    }
  })

/** How many messages are ready in a queue. */
export const depth = (queue: string): Effect.Effect<number> =>
  asOperator(async (channel) => (await channel.checkQueue(queue)).messageCount)

/** Waits until a queue has its consumer, and with it its binding. A consumer whose first declaration fails, or takes long, starts in the background. */
export const untilConsumed = (queue: string): Effect.Effect<void> =>
  asOperator((channel) => channel.checkQueue(queue)).pipe(
    Effect.exit,
    Effect.delay("20 millis"),
    Effect.repeat({ until: (found) => Exit.isSuccess(found) && found.value.consumerCount > 0 }),
    Effect.timeoutOrElse({ duration: "20 seconds", orElse: () => Effect.die(`queue '${queue}' has no consumer`) }),
    Effect.asVoid
  )

/** A prefix that no other test has. */
export const makePrefix = (): string => `test-${crypto.randomUUID().slice(0, 13)}`

/** Deletes what a test has declared. */
export const deleted = (queues: Iterable<string>, exchanges: Iterable<string>): Effect.Effect<void> =>
  asOperator(async (channel) => {
    for (const queue of queues) await channel.deleteQueue(queue)
    for (const exchange of exchanges) await channel.deleteExchange(exchange)
  })

/** A broker, and what it has declared. */
export interface TestBroker {
  readonly broker: MessageBroker["Service"]
  readonly prefix: string
  /** The queue of a group. */
  readonly queue: (topic: string, groupId: string) => string
}

/** Names that a consumer declares. */
const namesOf = (
  prefix: string,
  topic: string,
  { groupId, naming, retry }: Pick<MessageConsumer.MessageConsumer<unknown>, "groupId" | "naming" | "retry">
) => {
  const names = makeNames({ exchangePrefix: prefix, queuePrefix: prefix })
  const [queue, letters] = [names.queue(topic, groupId), deadLetterTopic(topic, groupId, naming)]
  const waits = retry?.waits ?? defaultWaits
  return {
    queues: [queue, names.deadLetters(letters), ...waits.map((wait) => retryQueue(queue, wait))],
    exchanges: [names.exchange(topic), names.exchange(letters)]
  }
}

const defaultWaits = [1_000, 2_000]

/** A broker whose queues and exchanges are deleted after it is closed. */
export const testBroker = Effect.fnUntraced(function* (
  options: RabbitMq.Options = {},
  prefix = makePrefix()
): Effect.fn.Return<TestBroker, unknown, Scope.Scope> {
  const [queues, exchanges] = [new Set<string>(), new Set<string>()]
  yield* Effect.addFinalizer(() => deleted(queues, exchanges))
  const made = yield* RabbitMq.make({ ...reachable, ...options, exchangePrefix: prefix, queuePrefix: prefix })
  const broker: MessageBroker["Service"] = {
    ...made,
    send: (message) => {
      exchanges.add(`${prefix}.${message.topic.name}`)
      return made.send(message)
    },
    declareTopics: (topics) => {
      for (const { name } of topics) exchanges.add(`${prefix}.${name}`)
      for (const { name } of topics) if (name.endsWith("-dlq")) queues.add(`${prefix}.${name}`)
      return made.declareTopics(topics)
    },
    consume: (consumer, observer) => {
      for (const { name } of consumer.topics) {
        const names = namesOf(prefix, name, consumer)
        for (const queue of names.queues) queues.add(queue)
        for (const exchange of names.exchanges) exchanges.add(exchange)
      }
      return made.consume(consumer, observer)
    }
  }
  return { broker, prefix, queue: (topic, groupId) => `${prefix}.${topic}:${groupId}` }
})
