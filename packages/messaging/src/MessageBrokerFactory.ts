/**
 * The brokers of a program, by kind, and their producers.
 */
import * as LogLine from "@eventbus/core/LogLine"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { BrokerNotRegistered, InvalidBrokers, NoBrokerRegistered } from "./BrokerRegistration.ts"
import * as Producer from "./internal/producer.ts"
import { MessageBroker } from "./MessageBroker.ts"
import { type MessageBrokerType, priority } from "./MessageBrokerType.ts"
import type { MessageProducer } from "./MessageProducer.ts"
import * as MessagingMetrics from "./MessagingMetrics.ts"

/** The brokers of a program. */
export class MessageBrokerFactory extends Context.Service<
  MessageBrokerFactory,
  {
    /** The producer of a broker. Fails with `BrokerNotRegistered` where there is none. */
    readonly getProducer: (type: MessageBrokerType) => Effect.Effect<MessageProducer, BrokerNotRegistered>
    /** The producer of a broker, if it is registered. */
    readonly getProducerIfAvailable: (type: MessageBrokerType) => Option.Option<MessageProducer>
    /** The producer of the default broker. Fails with `NoBrokerRegistered` where there is no broker at all. */
    readonly getDefaultProducer: Effect.Effect<MessageProducer, NoBrokerRegistered>
    /** The kind of the default broker. Undefined where there is no broker at all. */
    readonly getDefaultBrokerType: MessageBrokerType | undefined
    /** Whether a broker of this kind is registered. */
    readonly isSupported: (type: MessageBrokerType) => boolean
    /** The kinds that are registered. */
    readonly getSupportedBrokers: ReadonlySet<MessageBrokerType>
    /** The broker itself, for consumers and health. Fails with `BrokerNotRegistered`; without a kind it is the default broker, and fails with `NoBrokerRegistered`. */
    readonly getBroker: (
      type?: MessageBrokerType
    ) => Effect.Effect<MessageBroker["Service"], BrokerNotRegistered | NoBrokerRegistered>
    /** The brokers that are left out on purpose. */
    readonly skipped: ReadonlyArray<SkippedBroker>
  }
>()("@eventbus/messaging/MessageBrokerFactory") {}

/** A broker that is left out on purpose, and why, such as a setting that is missing. Its consumers are not started, and say so. */
export interface SkippedBroker {
  /** The kind that is left out. */
  readonly type: MessageBrokerType
  /** Why, for people. */
  readonly reason: string
}

/** The brokers of a program, and the default among them. */
export interface Options<L> {
  /** The layers of the brokers, one for each kind. May be empty: the program then runs without messaging. */
  readonly brokers: ReadonlyArray<L>
  /** The default broker, where it is registered. Default: KAFKA before RABBITMQ before the first of `brokers`. */
  readonly defaultBroker?: MessageBrokerType | undefined
  /** Brokers that are left out on purpose. Default: none. */
  readonly skipped?: ReadonlyArray<SkippedBroker>
}

type AnyBroker = Layer.Layer<MessageBroker, unknown, unknown>

/** The factory over these brokers. Closing the layer closes them. Fails with `InvalidBrokers` for two of the same kind. */
export const layer = <L extends AnyBroker>(
  options: Options<L>
): Layer.Layer<MessageBrokerFactory, InvalidBrokers | Layer.Error<L>, Layer.Services<L>> =>
  Layer.effect(
    MessageBrokerFactory,
    Effect.gen(function* () {
      const brokers = yield* Effect.forEach(options.brokers as ReadonlyArray<KnownBroker<L>>, (broker) =>
        Effect.map(Layer.build(broker), Context.get(MessageBroker))
      )
      const twice = brokers.find(({ type }, index) => brokers.findIndex((other) => other.type === type) !== index)
      if (twice !== undefined) {
        const detail = `two layers of MessageBrokerFactory.layer provide ${twice.type}; allowed is one for each kind of broker`
        return yield* new InvalidBrokers({ detail })
      }
      return yield* make(brokers, options)
    })
  )

/** The brokers by kind, with their producers. */
const make = (
  brokers: ReadonlyArray<MessageBroker["Service"]>,
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
    const isKnown = [...brokers, ...skipped].some(({ type }) => type === defaultBroker)
    if (defaultBroker !== undefined && chosen !== undefined && !isKnown) {
      const registered = Array.from(byType.keys()).join(", ")
      yield* LogLine.warning(
        `The default broker ${defaultBroker} is not registered (registered: ${registered}); messages go to ${chosen}. Correct messaging.defaultBroker, or give the broker's layer`
      )
    }
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

type KnownBroker<L extends AnyBroker> = Layer.Layer<MessageBroker, Layer.Error<L>, Layer.Services<L>>

/** The part of a configuration that `layerConfigured` reads, such as that of `MessagingConfiguration` of `@eventbus/config`. */
export interface Configured {
  /** Whether the program sends and receives messages at all. */
  readonly enabled: boolean
  /** The default broker, where it is registered. */
  readonly defaultBroker: MessageBrokerType
  /** Kafka: it is used when it is enabled and has addresses. */
  readonly kafka: {
    /** `messaging.kafka.enabled`. */
    readonly enabled: boolean
    /** Addresses, each `host:port`. Undefined: Kafka is left out. */
    readonly bootstrapServers: ReadonlyArray<string> | undefined
  }
  /** RabbitMQ: it is used when it is enabled and has a layer. */
  readonly rabbitmq: { readonly enabled: boolean }
}

/** The settings of Kafka with its addresses. */
export type ReachableKafka<C extends Configured> = C["kafka"] & {
  /** Addresses, each `host:port`. */
  readonly bootstrapServers: ReadonlyArray<string>
}

/**
 * The brokers that a configuration enables. Without `spring.kafka.bootstrap-servers`, and with a switch that is off, a broker is left out: the program starts, its consumers say in the log
 * that they are not started, and sending fails with `NoBrokerRegistered` or `BrokerNotRegistered`, which name the reason.
 */
export const layerConfigured = <C extends Configured, K extends AnyBroker, R extends AnyBroker = never>(
  configuration: C,
  layers: {
    /** The layer of Kafka. Called only where Kafka is used. */
    readonly KAFKA: (kafka: ReachableKafka<C>) => K
    /** The layer of RabbitMQ. Called only where RabbitMQ is used. Default: RabbitMQ is left out. */
    readonly RABBITMQ?: (rabbitmq: C["rabbitmq"]) => R
  }
): Layer.Layer<MessageBrokerFactory, InvalidBrokers | Layer.Error<K | R>, Layer.Services<K | R>> => {
  const { enabled, defaultBroker, kafka, rabbitmq } = configuration
  const off = enabled ? undefined : "messaging.enabled is false"
  const noKafka =
    off ??
    (kafka.enabled ? undefined : "messaging.kafka.enabled is false") ??
    (kafka.bootstrapServers === undefined ? "spring.kafka.bootstrap-servers is not set" : undefined)
  const noRabbit =
    off ??
    (rabbitmq.enabled ? undefined : "messaging.rabbitmq.enabled is false") ??
    (layers.RABBITMQ === undefined ? "the program has no layer for it" : undefined)
  return layer<K | R>({
    defaultBroker,
    brokers: [
      ...(noKafka === undefined ? [layers.KAFKA(kafka as ReachableKafka<C>)] : []),
      ...(noRabbit === undefined && layers.RABBITMQ !== undefined ? [layers.RABBITMQ(rabbitmq)] : [])
    ],
    skipped: [
      ...(noKafka === undefined ? [] : [{ type: "KAFKA", reason: noKafka }]),
      ...(noRabbit === undefined ? [] : [{ type: "RABBITMQ", reason: noRabbit }])
    ]
  })
}
