/** Sends messages to Kafka by the core's typed publishers, one for each topic. */
import type { Broker, TransactionalProducer } from "@eventbus/core/Broker"
import { CurrentTransaction } from "@eventbus/core/CurrentTransaction"
import * as Publisher from "@eventbus/core/Publisher"
import * as Serde from "@eventbus/core/Serde"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Complete } from "../../KafkaSettings.ts"
import type { Message } from "../../Message.ts"
import type { MessageBroker } from "../../MessageBroker.ts"
import type { Topic } from "../../Topic.ts"

type Send = MessageBroker["Service"]["send"]
type Published<T> = Publisher.Publisher<string | null, T>

const key = Serde.nullable(Serde.string)

export const make = (
  broker: Broker["Service"],
  { cluster, transactionalIdPrefix, producer }: Complete,
  producers: Context.Context<Publisher.Producers>,
  scope: Scope.Scope
): Send => {
  const publisherOf = publishers(cluster)
  if (transactionalIdPrefix === undefined) {
    return (message) => Effect.provideContext(publisherOf(message.topic).publish(published(message)), producers)
  }
  const transactionalId = `${transactionalIdPrefix}${globalThis.crypto.randomUUID()}`
  let open: TransactionalProducer | undefined
  const connect = Effect.map(
    Scope.provide(broker.transactionalProducer({ ...producer, transactionalId }), scope),
    (connected) => {
      open = connected
      return connected
    }
  )
  // A transactional producer has one transaction at a time. It connects with the first message.
  const one = Semaphore.makeUnsafe(1)
  return (message) =>
    Effect.suspend(() => (open === undefined ? connect : Effect.succeed(open))).pipe(
      Effect.flatMap(({ transaction }) =>
        transaction((current) =>
          publisherOf(message.topic)
            .inTransaction.publish(published(message))
            .pipe(Effect.provideService(CurrentTransaction, current))
        )
      ),
      one.withPermit,
      Effect.provideContext(producers)
    )
}

const published = <T>({ key, payload, headers, timestamp }: Message<T>): Publisher.Message<string | null, T> => ({
  ...{ key: key ?? null, value: payload, headers, timestamp }
})

/** The publisher of each topic, made with its first message. */
const publishers = (cluster: string) => {
  const made = new WeakMap<object, Published<never>>()
  return <T>(topic: Topic<T>): Published<T> => {
    const known = made.get(topic) as Published<T> | undefined
    if (known !== undefined) return known
    const fresh = Publisher.make({ topic: topic.name, cluster, key, value: topic.payload })
    made.set(topic, fresh as unknown as Published<never>)
    return fresh
  }
}
