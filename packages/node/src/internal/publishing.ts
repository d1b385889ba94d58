/** The producers behind `publish`: one for each cluster, made with its first record. No other module of the package makes producers. */
import {
  type Broker,
  type BrokerError,
  Clusters,
  type ConsumerRecord,
  Defaults,
  type EventBusError,
  type Serde,
  Tracing
} from "@eventbus/core"
import { Context, Effect, Layer, type Scope, Semaphore } from "effect"
import type { ProducerOptions } from "../KafkaOptions.ts"
import type { Message, Topic } from "../Topic.ts"
import { millisOf } from "./handlerCode.ts"
import { encode } from "./messages.ts"

export type PublishError = Serde.EncodeFailure | BrokerError.BrokerError | EventBusError.UnknownCluster

/** Publishes messages, in order. All are encoded before the first is sent, so that one which cannot be encoded sends none. */
export class Publishing extends Context.Service<
  Publishing,
  {
    readonly publish: <K, V>(
      topic: string | Topic<K, V>,
      messages: ReadonlyArray<Message<K, V>>,
      cluster?: string
    ) => Effect.Effect<ReadonlyArray<ConsumerRecord.RecordMetadata>, PublishError>
  }
>()("@eventbus/node/Publishing") {}

/** A cluster that is away keeps no bus from starting: a producer connects with its first record, and the next record tries again. */
export const layer = (options: ProducerOptions): Layer.Layer<Publishing, never, Broker.Broker> =>
  Layer.effect(
    Publishing,
    Effect.gen(function* () {
      const context = yield* Effect.context<Broker.Broker | Scope.Scope>()
      const made = new Map<string, Broker.Producer>()
      const one = Semaphore.makeUnsafe(1)
      const connect = Effect.fnUntraced(function* (cluster: string) {
        const known = made.get(cluster)
        if (known !== undefined) return known
        const broker = yield* Clusters.get(cluster)
        const producer = Tracing.producer(yield* broker.producer(producerOptions(options)))
        made.set(cluster, producer)
        return producer
      }, Effect.provideContext(context))
      const producerOf = (cluster: string) =>
        Effect.suspend(() => {
          const known = made.get(cluster)
          return known === undefined ? one.withPermits(1)(connect(cluster)) : Effect.succeed(known)
        })
      return {
        publish: (topic, messages, cluster = Defaults.binding.cluster) =>
          Effect.forEach(messages, (message) => Effect.fromResult(encode(topic, message))).pipe(
            Effect.flatMap((records) => Effect.flatMap(producerOf(cluster), (producer) => producer.sendAll(records)))
          )
      }
    })
  )

const producerOptions = ({
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
