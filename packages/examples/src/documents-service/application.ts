/**
 * The service as a Layer, from its settings: topics that are missing are created, and then the two consumers start. Without bootstrap servers nothing of Kafka is there, and what
 * sends fails with `NoBrokerRegistered`.
 */
import type { MessagingConfiguration } from "@eventbus/config"
import type { Broker } from "@eventbus/core"
import { KafkaJs } from "@eventbus/kafkajs"
import { KafkaMessaging, MessageBrokerFactory, MessageConsumer } from "@eventbus/messaging"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import { emailConsumer } from "./emailConsumer.ts"
import { declarations } from "./topicNames.ts"
import { userEventListener } from "./userEventListener.ts"

type Settings = MessagingConfiguration.MessagingConfiguration

/** The host name that stands for the Kafka inside the process. */
const embedded = "embedded"

/** The cluster of the settings. Undefined where the service runs without messaging. */
export const clusterOf = ({ enabled, kafka }: Settings): Layer.Layer<Broker.Broker> | undefined => {
  const { bootstrapServers: brokers = [] } = kafka
  if (!enabled || !kafka.enabled || brokers.length === 0) return undefined
  return brokers.some((address) => address.startsWith(`${embedded}:`))
    ? MemoryBroker.layer()
    : KafkaJs.layer({ brokers })
}

const withoutKafka = MessageBrokerFactory.layer({
  brokers: [],
  skipped: [{ type: "KAFKA", reason: "spring.kafka.bootstrap-servers is not set, or messaging is not enabled" }]
})

/** The brokers of the service, with their topics. */
export const brokers = ({ defaultBroker, kafka }: Settings, cluster: Layer.Layer<Broker.Broker> | undefined) =>
  cluster === undefined
    ? withoutKafka
    : Layer.effectDiscard(
        MessageBrokerFactory.MessageBrokerFactory.use(({ getBroker }) =>
          Effect.flatMap(getBroker(), ({ declareTopics }) => declareTopics(declarations))
        )
      ).pipe(
        Layer.provideMerge(
          MessageBrokerFactory.layer({ brokers: [KafkaMessaging.layer(kafka.settings)], defaultBroker })
        ),
        Layer.provide(cluster)
      )

/** The consumers of the service. */
export const consumers = Layer.merge(MessageConsumer.layer(emailConsumer), MessageConsumer.layer(userEventListener))
