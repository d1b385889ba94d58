/** Sends messages to Kafka by the core's typed publishers, one for each topic. */
import type { Broker, TransactionalProducer } from "@eventbus/core/Broker"
import { ProducerFenced } from "@eventbus/core/BrokerError"
import { CurrentTransaction } from "@eventbus/core/CurrentTransaction"
import * as Publisher from "@eventbus/core/Publisher"
import * as Serde from "@eventbus/core/Serde"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Complete } from "../../KafkaSettings.ts"
import type { Message } from "../../Message.ts"
import type { MessageBroker } from "../../MessageBroker.ts"
import type { Topic } from "../../Topic.ts"

type Send = MessageBroker["Service"]["send"]

const key = Serde.nullable(Serde.string)

export const make = (
  broker: Broker["Service"],
  { cluster, transactionalIdPrefix, producer }: Complete,
  producers: Context.Context<Publisher.Producers>,
  scope: Scope.Scope
): Send => {
  if (transactionalIdPrefix === undefined) {
    const boundTo = Context.get(producers, Publisher.Producers)
    const publisherOf = perTopic(<T>(topic: Topic<T>) => Publisher.makeBound(optionsOf(topic, cluster), boundTo))
    return (message) => publisherOf(message.topic).publish(published(message))
  }
  const publisherOf = perTopic(<T>(topic: Topic<T>) => Publisher.make(optionsOf(topic, cluster)).inTransaction)
  let open: TransactionalProducer | undefined
  const connect = Effect.gen(function* () {
    const own = yield* Scope.fork(scope)
    const transactionalId = `${transactionalIdPrefix}${globalThis.crypto.randomUUID()}`
    const connected = yield* Scope.provide(broker.transactionalProducer({ ...producer, transactionalId }), own).pipe(
      Effect.onError(() => Scope.close(own, Exit.void))
    )
    // Kafka fences a producer whose transaction it has given up, as after a long pause of the process. The next message gets a new one.
    const replaced = Effect.suspend(() => {
      if (open === usable) open = undefined
      return Scope.close(own, Exit.void)
    })
    const usable: TransactionalProducer = {
      transaction: (use) =>
        Effect.tapError(connected.transaction(use), (error) =>
          error instanceof ProducerFenced ? replaced : Effect.void
        )
    }
    open = usable
    return usable
  })
  const known = (otherwise: typeof connect) =>
    Effect.suspend(() => (open === undefined ? otherwise : Effect.succeed(open)))
  // It connects with the first message, and messages that come meanwhile wait for it.
  const one = Semaphore.makeUnsafe(1)
  const connected = known(one.withPermit(known(connect)))
  return (message) =>
    Effect.flatMap(connected, ({ transaction }) =>
      transaction((current) =>
        publisherOf(message.topic).publish(published(message)).pipe(Effect.provideService(CurrentTransaction, current))
      )
    ).pipe(Effect.provideContext(producers))
}

const published = <T>({ key, payload, headers, timestamp }: Message<T>): Publisher.Message<string | null, T> => ({
  key: key ?? null,
  value: payload,
  headers,
  timestamp
})

const optionsOf = <T>({ name, payload }: Topic<T>, cluster: string): Publisher.Options<string | null, T> => ({
  ...{ topic: name, cluster, key, value: payload }
})

/** The publisher of each topic, made with its first message. */
const perTopic = <R>(make: <T>(topic: Topic<T>) => Publisher.Operations<string | null, T, R>) => {
  const made = new WeakMap<object, Publisher.Operations<string | null, never, R>>()
  return <T>(topic: Topic<T>): Publisher.Operations<string | null, T, R> => {
    const known = made.get(topic) as Publisher.Operations<string | null, T, R> | undefined
    if (known !== undefined) return known
    const fresh = make(topic)
    made.set(topic, fresh)
    return fresh
  }
}
