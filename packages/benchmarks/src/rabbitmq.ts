/**
 * Messages per second on RabbitMQ, against bare amqplib in the same run: confirmed publishes, and a consumer whose handler does nothing.
 *
 * RabbitMQ is the local one, unless `RABBITMQ_TEST=amqp://user:password@host:port/vhost` names another.
 */
import { Serde } from "@eventbus/core"
import { MessageBroker, MessageBrokerFactory, MessageConsumer, type MessageRetry, Topic } from "@eventbus/messaging"
import { RabbitMq } from "@eventbus/rabbitmq"
import { type ChannelModel, type ConfirmChannel, connect } from "amqplib"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import { Arrivals } from "./harness/Arrivals.ts"
import { make, type Participant, ratioAtLeast, type TopicPlan } from "./harness/Benchmark.ts"
import { numbered } from "./harness/kafka.ts"
import { now, pace, since } from "./harness/stopwatch.ts"

type Parameters = Readonly<Record<"messages" | "warmup" | "concurrency" | "prefetch" | "bytes", number>>

/** No topic of Kafka is used. */
const topic: TopicPlan<Parameters> = { lifetime: "run", partitions: 1 }

const server = new URL(process.env["RABBITMQ_TEST"] ?? "amqp://guest:guest@127.0.0.1:5672")

const options: RabbitMq.Options = {
  hosts: [`${server.hostname}:${server.port === "" ? 5672 : server.port}`],
  username: decodeURIComponent(server.username),
  password: Redacted.make(decodeURIComponent(server.password)),
  vhost: server.pathname.length > 1 ? decodeURIComponent(server.pathname.slice(1)) : "/"
}

const connection = Effect.acquireRelease(
  Effect.promise(() => connect(server.href, { noDelay: true })),
  (model) => Effect.promise(() => model.close())
)

const messages = Topic.make("messages", Serde.bytes)

/** Names of one round, which are deleted with it. */
const names = Effect.fnUntraced(function* (model: ChannelModel) {
  const prefix = `bench-${crypto.randomUUID().slice(0, 13)}`
  const [exchange, letters] = [`${prefix}.messages`, `${prefix}.messages-dlq`]
  const queue = `${exchange}:bench`
  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => {
      const channel = await model.createChannel()
      await Promise.all([queue, letters].map((name) => channel.deleteQueue(name)))
      await Promise.all([exchange, letters].map((name) => channel.deleteExchange(name)))
    })
  )
  return { prefix, exchange, queue }
})

/** The queue of a group, as the package declares it, but by amqplib. */
const declare = async (channel: ConfirmChannel, exchange: string, queue: string): Promise<void> => {
  await channel.assertExchange(exchange, "topic")
  await channel.assertQueue(queue, {
    arguments: {
      ...{ "x-queue-type": "quorum", "x-delivery-limit": 100, "x-overflow": "reject-publish" },
      ...{ "x-dead-letter-exchange": "", "x-dead-letter-routing-key": `${exchange}-dlq` },
      "x-dead-letter-strategy": "at-least-once"
    }
  })
  await channel.bindQueue(queue, exchange, "#")
}

/** Publishes numbers, so many at once. */
const publishAll = (publish: (number: number) => Promise<void>, from: number, to: number, concurrency: number) =>
  Effect.promise(async () => {
    let next = from
    const worker = async () => {
      while (next < to) await publish(next++)
    }
    await Promise.all(Array.from({ length: concurrency }, worker))
  })

const confirmed =
  (channel: ConfirmChannel, exchange: string, bytes: number) =>
  (number: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const content = Buffer.from(numbered(number, bytes))
      const settle = (error: unknown) => (error === null ? resolve() : reject(error))
      channel.publish(exchange, "", content, { persistent: true, mandatory: true }, settle)
    })

/** The same by effects: one fiber for each of those at once, as programs on Effect have. */
const sendAll = (
  send: (number: number) => Effect.Effect<unknown, string>,
  from: number,
  to: number,
  concurrency: number
) => {
  let next = from
  const worker = Effect.whileLoop({ while: () => next < to, body: () => send(next++), step: () => {} })
  return Effect.all(
    Array.from({ length: concurrency }, () => worker),
    { concurrency: "unbounded", discard: true }
  )
}

const makeBroker = (prefix: string, prefetch: number) =>
  RabbitMq.make({ ...options, exchangePrefix: prefix, queuePrefix: prefix, prefetch })

const producerOf = (broker: MessageBroker.MessageBroker["Service"]) =>
  Effect.flatMap(
    Layer.build(MessageBrokerFactory.layer({ brokers: [Layer.succeed(MessageBroker.MessageBroker, broker)] })),
    (context) => Context.get(context, MessageBrokerFactory.MessageBrokerFactory).getDefaultProducer
  )

interface Round {
  readonly model: ChannelModel
  readonly channel: ConfirmChannel
  readonly prefix: string
  readonly exchange: string
  readonly queue: string
  readonly parameters: Parameters
}

/** A round with its queue, declared by amqplib for both sides. */
const participant = (
  measure: (round: Round) => Effect.Effect<Readonly<Record<string, ReadonlyArray<number>>>, unknown, Scope.Scope>
): Participant<Parameters> => ({
  topic,
  role: Effect.fnUntraced(function* ({ parameters }) {
    const model = yield* connection
    const { prefix, exchange, queue } = yield* names(model)
    const channel = yield* Effect.promise(() => model.createConfirmChannel())
    yield* Effect.promise(() => declare(channel, exchange, queue))
    return yield* measure({ model, channel, prefix, exchange, queue, parameters })
  }, Effect.scoped)
})

const publishing = (
  work: (
    round: Round
  ) => Effect.Effect<(from: number, to: number) => Effect.Effect<unknown, unknown>, unknown, Scope.Scope>
) =>
  participant(
    Effect.fnUntraced(function* (round) {
      const { messages, warmup } = round.parameters
      const publish = yield* work(round)
      yield* publish(0, warmup)
      const start = now()
      yield* publish(warmup, warmup + messages)
      const spent = since(start)
      const { messageCount } = yield* Effect.promise(() => round.channel.checkQueue(round.queue))
      if (messageCount !== warmup + messages) return yield* Effect.fail(`${messageCount} messages are in the queue`)
      return pace(spent, messages)
    })
  )

const consuming = (run: (round: Round, arrivals: Arrivals) => Effect.Effect<void, unknown, Scope.Scope>) =>
  participant(
    Effect.fnUntraced(function* (round) {
      const { messages, bytes } = round.parameters
      yield* publishAll(confirmed(round.channel, round.exchange, bytes), 0, messages, 200)
      const arrivals = new Arrivals(messages)
      yield* Effect.scoped(Effect.andThen(run(round, arrivals), arrivals.all()))
      return yield* arrivals.pace
    })
  )

export const rabbitmq = make({
  name: "rabbitmq",
  header: [
    "messages of 200 bytes on RabbitMQ, through a topic exchange into one quorum queue; both sides persistent and mandatory",
    "publish: MessageProducer.send, 50 at a time, each confirmed; amqplib publish: ConfirmChannel.publish with a callback, 50 at a time",
    "consume: a MessageConsumer with its defaults, prefetch 200; amqplib consume: Channel.consume with prefetch 200, one acknowledgement a message"
  ],
  parameters: { messages: 20_000, warmup: 2_000, concurrency: 50, prefetch: 200, bytes: 200 },
  smoke: { messages: 200, warmup: 20, concurrency: 5 },
  participants: {
    publish: publishing(
      Effect.fnUntraced(function* ({ prefix, parameters: { bytes, concurrency, prefetch } }) {
        const { send } = yield* Effect.flatMap(makeBroker(prefix, prefetch), producerOf)
        const sent = (number: number) =>
          Effect.flatMap(
            send<Uint8Array | null>(numbered(number, bytes), messages),
            ({ success, errorMessage = "" }) => (success ? Effect.void : Effect.fail(errorMessage))
          )
        return (from: number, to: number) => sendAll(sent, from, to, concurrency)
      })
    ),
    "amqplib publish": publishing(({ channel, exchange, parameters: { bytes, concurrency } }) =>
      Effect.succeed((from: number, to: number) =>
        publishAll(confirmed(channel, exchange, bytes), from, to, concurrency)
      )
    ),
    consume: consuming(
      Effect.fnUntraced(function* ({ prefix, parameters: { prefetch } }, arrivals) {
        const broker = yield* makeBroker(prefix, prefetch)
        const consumer = MessageConsumer.make({
          ...{ topics: [messages], groupId: "bench", retry: { maxAttempts: 1 } satisfies MessageRetry.Options },
          handle: ({ payload }) => Effect.sync(() => arrivals.add(payload))
        })
        yield* broker.consume(consumer, { onDeadLetter: () => {} })
      })
    ),
    "amqplib consume": consuming(({ model, queue, parameters: { prefetch } }, arrivals) =>
      Effect.acquireRelease(
        Effect.promise(async () => {
          const channel = await model.createChannel()
          await channel.prefetch(prefetch)
          await channel.consume(queue, (message) => {
            channel.ack(message!)
            arrivals.add(message!.content)
          })
          return channel
        }),
        (channel) => Effect.promise(() => channel.close())
      ).pipe(Effect.asVoid)
    )
  },
  measures: ["publish", "consume"].flatMap((participant) => [
    { participant, against: `amqplib ${participant}`, series: "rate", unit: "messages/s", target: ratioAtLeast(0.9) },
    { participant, against: `amqplib ${participant}`, series: "cpu", label: "CPU", unit: "µs/message" }
  ])
})
