/** The broker: two connections, one publisher, and the consumers. */
import * as LogLine from "@eventbus/core/LogLine"
import { MessageBroker } from "@eventbus/messaging/MessageBroker"
import type { MessageConsumer } from "@eventbus/messaging/MessageConsumer"
import { MessagingException, receiveFailed } from "@eventbus/messaging/MessagingException"
import type { TopicDeclaration } from "@eventbus/messaging/Topic"
import type { ChannelModel, ConfirmChannel } from "amqplib"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { RabbitMqError } from "../RabbitMqError.ts"
import { backoff } from "./backoff.ts"
import { type Connection, makeConnection } from "./connection.ts"
import { type BrokerContext, startConsumer } from "./consumer.ts"
import * as Failures from "./failures.ts"
import { healthOf } from "./health.ts"
import { keepRunning } from "./keepRunning.ts"
import { outgoingOf } from "./messages.ts"
import { deadLetterTopic, makeNames, retryQueue } from "./names.ts"
import { Publisher, ticksOfLimit } from "./publisher.ts"
import type { Reading } from "./session.ts"
import type { Settings } from "./settings.ts"
import { declareTopic, onChannel } from "./topology.ts"

const brokerType = "RABBITMQ"

/** How long closing waits for messages that are on their way. */
const drainMillis = 10_000

/** More waits than this are more queues than a consumer should have. */
const maxWaits = 50

/** Connects, and closes with the scope: first the consumers, then the publisher, then the connections. */
export const makeBroker = Effect.fnUntraced(function* (settings: Settings) {
  const publishing = yield* makeConnection("RabbitMQ publisher", settings)
  const consuming = yield* makeConnection("RabbitMQ consumers", settings)
  yield* Effect.mapError(Effect.andThen(publishing.first, consuming.first), (cause) => {
    const text = "Failed to connect to RABBITMQ"
    return new MessagingException({ text, brokerType, cause })
  })
  const publisher = yield* makePublisher(publishing, settings)
  const names = makeNames(settings)
  const context: BrokerContext = { settings, names, publisher, connection: consuming }
  return MessageBroker.of({
    type: brokerType,
    capabilities: new Set(),
    sendTimeoutMillis: settings.sendTimeoutMillis,
    send: (message) => {
      const outgoing = outgoingOf(message, names)
      return Result.isSuccess(outgoing) ? publisher.publish(outgoing.success) : Effect.fail(outgoing.failure)
    },
    consume: (consumer, observer) =>
      Effect.gen(function* () {
        const failed = (cause: unknown) =>
          receiveFailed(brokerType, consumer.topics.map(({ name }) => name).join(", "), cause)
        const plans = planOf(context, consumer)
        if (Result.isFailure(plans)) return yield* Effect.fail(failed(plans.failure))
        yield* Effect.mapError(startConsumer(context, consumer, plans.success, observer), failed)
      }),
    declareTopics: (topics) => declareTopics(context, topics),
    health: healthOf(consuming, publishing)
  })
})

const makePublisher = Effect.fnUntraced(function* (
  connection: Connection,
  { maxUnconfirmed, sendTimeoutMillis }: Settings
) {
  const publisher = new Publisher(maxUnconfirmed, () => silence(connection, sendTimeoutMillis))
  yield* Effect.forkScoped(keepRunning("RabbitMQ publisher", keepChannel(connection, publisher)))
  const tick = Effect.andThen(
    Effect.sleep(Math.max(1, sendTimeoutMillis / ticksOfLimit)),
    Effect.sync(() => publisher.tick())
  )
  yield* Effect.forkScoped(keepRunning("RabbitMQ publisher's time limits", Effect.forever(tick)))
  // Last, so that it runs first: draining needs the two fibers above.
  yield* Effect.addFinalizer(() =>
    publisher.idle.pipe(
      Effect.timeoutOrElse({ duration: drainMillis, orElse: () => Effect.void }),
      Effect.andThen(Effect.sync(() => publisher.close(Failures.failure("Unreachable", "the broker is closed."))))
    )
  )
  return publisher
})

/** Why a message is not confirmed in time. */
const silence = ({ state }: Connection, limit: number): RabbitMqError => {
  const within = `RabbitMQ did not confirm the message within ${limit} ms`
  if (state.blocked !== undefined)
    return Failures.failure("NotConfirmed", `${within}: it takes no messages now (${state.blocked}).`)
  if (state.failure !== undefined) return Failures.failure("NotConfirmed", `${within}: ${state.failure.message}`)
  return Failures.failure("NotConfirmed", `${within}. It may have kept it or not.`)
}

/** Gives the publisher a channel, and a new one whenever that is closed. */
const keepChannel = Effect.fnUntraced(function* (connection: Connection, publisher: Publisher) {
  for (let failures = 1; ; failures++) {
    const model = yield* connection.model
    const channel = yield* Effect.result(
      Effect.tryPromise({ try: () => model.createConfirmChannel(), catch: Failures.ofChannel })
    )
    if (Result.isSuccess(channel)) {
      failures = 0
      const refusal = yield* whileOpen(model, channel.success, publisher)
      if (refusal !== undefined)
        yield* LogLine.warning(`RabbitMQ publisher: ${refusal.message} Unconfirmed messages are sent again.`)
    }
    yield* backoff(Math.max(failures, 1))
  }
})

/** Lends a channel to the publisher until it is closed. Answers RabbitMQ's reason, where it closed the channel alone. */
const whileOpen = (
  model: ChannelModel,
  channel: ConfirmChannel,
  publisher: Publisher
): Effect.Effect<RabbitMqError | undefined> =>
  Effect.callback((resume) => {
    let refusal: RabbitMqError | undefined
    channel.on("error", (error) => {
      refusal = Failures.ofChannel(error)
    })
    channel.on("close", () => {
      publisher.disconnected(refusal)
      resume(Effect.succeed(refusal))
    })
    publisher.connected(model, channel)
  })

/** The topics that a consumer reads, with the names and waits that it needs. Fails for what RabbitMQ cannot have. */
const planOf = <T, E, R>(
  { settings, names }: BrokerContext,
  { topics, groupId, naming, retry = settings.retry }: MessageConsumer<T, E, R>
): Result.Result<ReadonlyArray<Reading<unknown>>, RabbitMqError> => {
  const waits = retry.retryTopicsEnabled ? [...new Set(retry.waits)] : []
  if (waits.length > maxWaits) {
    const text = `the retry has ${waits.length} different waits, and each needs a queue; at most ${maxWaits} are allowed. Lower maxAttempts or maxInterval, or raise multiplier.`
    return Result.fail(Failures.failure("Unencodable", text))
  }
  const plans = topics.map(
    (topic): Reading<unknown> => ({
      ...{ topic: topic.name, queue: names.queue(topic.name, groupId), waits },
      letters: deadLetterTopic(topic.name, groupId, naming),
      of: topic as Reading<unknown>["of"]
    })
  )
  const longest = plans
    .flatMap(({ letters, queue }) => [names.exchange(letters), queue, ...waits.map((wait) => retryQueue(queue, wait))])
    .find((name) => Buffer.byteLength(name) > 255)
  return longest === undefined
    ? Result.succeed(plans)
    : Result.fail(
        Failures.failure(
          "Unencodable",
          `the name '${longest}' has ${Buffer.byteLength(longest)} bytes; AMQP allows 255. Shorten topic, group or prefix.`
        )
      )
}

/** Declares all topics, each on its own, and fails for the first that failed. */
const declareTopics = Effect.fnUntraced(function* (
  { connection, names }: BrokerContext,
  topics: ReadonlyArray<TopicDeclaration>
) {
  const model = yield* connection.model
  let first: MessagingException | undefined
  for (const { name } of topics) {
    const declared = yield* Effect.result(
      Effect.tryPromise({
        try: () => onChannel(model, (channel) => declareTopic(channel, names, name)),
        catch: Failures.ofChannel
      })
    )
    if (Result.isSuccess(declared)) continue
    const text = `Failed to create topic ${name} via ${brokerType}`
    first ??= new MessagingException({ text, brokerType, topic: name, cause: declared.failure })
  }
  if (first !== undefined) return yield* Effect.fail(first)
})
