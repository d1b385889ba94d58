/** The brokers of a factory by kind, with their producers. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { BrokerNotRegistered, NoBrokerRegistered } from "../BrokerRegistration.ts"
import type { MessageBroker } from "../MessageBroker.ts"
import type { MessageBrokerFactory, Options } from "../MessageBrokerFactory.ts"
import { type MessageBrokerType, priority } from "../MessageBrokerType.ts"
import * as MessagingMetrics from "../MessagingMetrics.ts"
import * as Producer from "./producer.ts"

type Broker = MessageBroker["Service"]

export const make = (
  brokers: ReadonlyArray<Broker>,
  { defaultBroker, skipped = [] }: Pick<Options<never>, "defaultBroker" | "skipped">
): Effect.Effect<MessageBrokerFactory["Service"]> =>
  Effect.gen(function* () {
    const byType = new Map(brokers.map((broker) => [broker.type, broker]))
    const producers = new Map(
      yield* Effect.forEach(brokers, (broker) =>
        Effect.map(
          MessagingMetrics.make(broker.type),
          (metrics) => [broker.type, Producer.make(broker, metrics)] as const
        )
      )
    )
    const first = [...(defaultBroker === undefined ? [] : [defaultBroker]), ...priority, ...byType.keys()]
    const chosen = first.find((type) => byType.has(type))
    const missing = (type: MessageBrokerType) => {
      const reason = skipped.find((one) => one.type === type)?.reason
      return new BrokerNotRegistered({
        ...{ brokerType: type, registered: Array.from(byType.keys()) },
        ...(reason !== undefined && { reason })
      })
    }
    const none = Effect.suspend(() =>
      Effect.fail(new NoBrokerRegistered({ reasons: skipped.map(({ type, reason }) => `${type}: ${reason}`) }))
    )
    const found = <A>(known: ReadonlyMap<MessageBrokerType, A>, type: MessageBrokerType) => {
      const one = known.get(type)
      return one === undefined ? Effect.fail(missing(type)) : Effect.succeed(one)
    }
    return {
      getProducer: (type) => found(producers, type),
      getProducerIfAvailable: (type) => Option.fromNullishOr(producers.get(type)),
      getDefaultProducer: chosen === undefined ? none : Effect.succeed(producers.get(chosen)!),
      getDefaultBrokerType: chosen,
      isSupported: (type) => byType.has(type),
      getSupportedBrokers: new Set(byType.keys()),
      getBroker: (type = chosen) => (type === undefined ? none : found(byType, type)),
      skipped
    }
  })
