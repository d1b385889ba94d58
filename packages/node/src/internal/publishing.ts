/** Publishing through the core's publishers, which share one producer for each cluster. A producer connects with its first record, so a cluster that is away keeps no bus from starting. */
import { type Broker, Defaults, Publisher } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ProducerOptions } from "../KafkaOptions.ts"
import { defineTopic, type Topic } from "../Topic.ts"
import { millisOf } from "./millisOf.ts"

/** The ways to publish to a topic. */
type Operations<K, V> = Publisher.Operations<K, V, never>

/** The producers of a bus. */
export class Publishing extends Context.Service<
  Publishing,
  {
    readonly to: <K, V>(topic: string | Topic<K, V>, cluster?: string) => Operations<K, V>
  }
>()("@eventbus/node/Publishing") {}

export const layer = (options: ProducerOptions): Layer.Layer<Publishing, unknown, Broker.Broker> =>
  Layer.effect(
    Publishing,
    Effect.map(Effect.context<Publisher.Producers>(), (producers) => ({
      to: (topic, cluster = Defaults.binding.cluster) => provided(topic, cluster, producers)
    }))
  ).pipe(Layer.provide(Publisher.layer(producerOptions(options))))

/** Publishes to a topic in a transaction. */
export const inTransaction = <K, V>(topic: string | Topic<K, V>, transaction: Broker.Producer): Operations<K, V> =>
  provided(
    topic,
    Defaults.binding.cluster,
    Context.make(Publisher.Producers, {
      // The transaction is one of the handler's own cluster, whatever its alias is.
      producer: () => Effect.succeed(transaction),
      // Only a partitioner asks, and no topic of this package has one.
      partitions: () => Effect.succeed(1)
    })
  )

const provided = <K, V>(
  target: string | Topic<K, V>,
  cluster: string,
  producers: Context.Context<Publisher.Producers>
): Operations<K, V> => {
  const { topic, key, value } = typeof target === "string" ? (defineTopic(target) as unknown as Topic<K, V>) : target
  const { publish, publishAll } = Publisher.make({ topic, key, value, cluster })
  return {
    ...{ topic, cluster },
    publish: (message) => Effect.provideContext(publish(message), producers),
    publishAll: (messages) => Effect.provideContext(publishAll(messages), producers)
  }
}

/** Options of a producer, as the core takes them. */
export const producerOptions = ({
  linger,
  deliveryTimeout,
  closeTimeout,
  ...rest
}: ProducerOptions): Broker.ProducerOptions => ({
  ...rest,
  ...(linger === undefined ? {} : { linger: millisOf(linger) }),
  ...(deliveryTimeout === undefined ? {} : { deliveryTimeout: millisOf(deliveryTimeout) }),
  ...(closeTimeout === undefined ? {} : { closeTimeout: millisOf(closeTimeout) })
})
