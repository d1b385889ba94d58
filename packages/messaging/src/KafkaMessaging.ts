/**
 * Messaging on Kafka, through the Broker port: on a real cluster by `@eventbus/kafkajs`, in memory by `@eventbus/testkit`. Producers are the core's publishers, consumers its
 * bindings, so a message is encoded once, decoded once, and consumers show in health, snapshots and the admin API like every binding.
 *
 * ```ts
 * import { KafkaJs } from "@eventbus/kafkajs"
 * import { KafkaMessaging, MessageBrokerFactory } from "@eventbus/messaging"
 * import { Layer } from "effect"
 *
 * export const Brokers = MessageBrokerFactory.layer({ brokers: [KafkaMessaging.layer()] }).pipe(
 *   Layer.provide(KafkaJs.layer({ brokers: ["localhost:9092"] }))
 * )
 * ```
 */
import { Broker } from "@eventbus/core/Broker"
import * as Clusters from "@eventbus/core/Clusters"
import * as EventBusConnector from "@eventbus/core/EventBusConnector"
import type { UnknownCluster } from "@eventbus/core/EventBusError"
import { Hostname } from "@eventbus/core/Hostname"
import * as Publisher from "@eventbus/core/Publisher"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as KafkaConsume from "./internal/kafka/kafkaConsume.ts"
import * as KafkaSend from "./internal/kafka/kafkaSend.ts"
import * as KafkaTopics from "./internal/kafka/kafkaTopics.ts"
import * as KafkaHealth from "./KafkaHealth.ts"
import * as KafkaSettings from "./KafkaSettings.ts"
import { capabilities, MessageBroker } from "./MessageBroker.ts"
import * as MessagingException from "./MessagingException.ts"

/**
 * The broker `KAFKA`. Nothing is connected before the first message, and before the first consumer. Throws `ConfigurationValidation` for settings out of their ranges; fails
 * with `UnknownCluster` for an alias that no cluster has.
 */
export const layer = (
  settings: KafkaSettings.KafkaSettings = {}
): Layer.Layer<MessageBroker, UnknownCluster, Broker> => {
  const complete = KafkaSettings.complete(settings)
  return Layer.effect(MessageBroker, make(complete)).pipe(
    Layer.provide(Layer.orDie(Publisher.layer(complete.producer))),
    Layer.provide(EventBusConnector.layer)
  )
}

const make = (settings: KafkaSettings.Complete) =>
  Effect.gen(function* () {
    const { cluster } = settings
    const connector = yield* EventBusConnector.EventBusConnector
    const producers = yield* Effect.context<Publisher.Producers>()
    const broker = yield* Clusters.get(cluster)
    // Bindings find their cluster by these.
    const ofClusters = Context.make(Broker, yield* Broker).pipe(
      Context.add(Clusters.Clusters, yield* Clusters.Clusters),
      Context.add(Hostname, yield* Hostname)
    )
    const consume: MessageBroker["Service"]["consume"] = (consumer, observer) => {
      const failed = (cause: unknown) =>
        MessagingException.receiveFailed("KAFKA", consumer.topics.map(({ name }) => name).join(", "), cause)
      const binding = Effect.try({ try: () => KafkaConsume.bindingOf(consumer, settings, observer), catch: failed })
      return Effect.acquireRelease(
        Effect.flatMap(binding, (described) => Effect.mapError(connector.register(described), failed)),
        () => Effect.ignore(connector.destroy(`${cluster}:${consumer.name}`))
      ).pipe(Effect.provideContext(ofClusters))
    }
    return MessageBroker.of({
      type: "KAFKA",
      capabilities: new Set(capabilities),
      sendTimeoutMillis: settings.sendTimeoutMillis,
      send: KafkaSend.make(broker, settings, producers, yield* Effect.scope),
      consume,
      declareTopics: (topics) => KafkaTopics.declare(broker, topics, settings.topics),
      health: Effect.map(Effect.provideService(KafkaHealth.checkHealth, Broker, broker), KafkaHealth.asBrokerHealth)
    })
  })
