/**
 * The service as a Layer, from its settings: topics that are missing are created, and then the two consumers start. Without a broker, what sends fails
 * with `NoBrokerRegistered`.
 */
import type { MessagingConfiguration } from "@eventbus/config"
import type { Broker } from "@eventbus/core"
import { KafkaJs } from "@eventbus/kafkajs"
import { KafkaMessaging, MessageBrokerFactory, MessageConsumer } from "@eventbus/messaging"
import { RabbitMq } from "@eventbus/rabbitmq"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import { emailConsumer } from "./emailConsumer.ts"
import { declarations } from "./topicNames.ts"
import { userEventListener } from "./userEventListener.ts"

type Settings = MessagingConfiguration.MessagingConfiguration

/** The host name that stands for the Kafka inside the process. */
const embedded = "embedded"

/** The cluster at these addresses. Nobody asks the one of no addresses: the service then runs without messaging. */
export const clusterAt = (addresses: ReadonlyArray<string> = []): Layer.Layer<Broker.Broker> =>
  addresses.every((address) => address.startsWith(`${embedded}:`))
    ? MemoryBroker.layer()
    : KafkaJs.layer({ brokers: addresses })

const declareTopics = Layer.effectDiscard(
  MessageBrokerFactory.MessageBrokerFactory.use(({ getDefaultBrokerType, getBroker }) =>
    getDefaultBrokerType === undefined
      ? Effect.void
      : Effect.flatMap(getBroker(), (broker) => broker.declareTopics(declarations))
  )
)

/** Where RabbitMQ is, with commas between addresses. */
const rabbitHosts = process.env["RABBITMQ_HOSTS"] ?? "localhost:5672"

/** The brokers of the service, with their topics. */
export const brokers = (settings: Settings, cluster: Layer.Layer<Broker.Broker>) =>
  declareTopics.pipe(
    Layer.provideMerge(
      MessageBrokerFactory.layerConfigured(settings, {
        KAFKA: (kafka) => KafkaMessaging.layer(kafka.settings),
        RABBITMQ: ({ exchangePrefix, queuePrefix }) =>
          RabbitMq.layer({ hosts: rabbitHosts.split(","), exchangePrefix, queuePrefix })
      })
    ),
    Layer.provide(cluster)
  )

/** The consumers of the service. */
export const consumers = Layer.merge(MessageConsumer.layer(emailConsumer), MessageConsumer.layer(userEventListener))
