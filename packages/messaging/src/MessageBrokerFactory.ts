/**
 * The brokers of a program, by kind, and their producers (brokers seed "MessageBrokerFactory", ruling 66).
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { MessageBroker } from "./MessageBroker.ts"
import type { MessageBrokerType } from "./MessageBrokerType.ts"
import type { MessageProducer } from "./MessageProducer.ts"

/** No broker of this kind is registered: the seed's argument error. */
export class BrokerNotRegistered extends Schema.TaggedError<BrokerNotRegistered>()("BrokerNotRegistered", {
  /** The kind that was asked for. */
  brokerType: Schema.String,
  /** The kinds that are registered. */
  registered: Schema.Array(Schema.String),
  /** Why it was left out on purpose. Absent when nobody named it. */
  reason: Schema.optionalKey(Schema.String)
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    const why = this.reason === undefined ? "" : ` (${this.reason})`
    const known = this.registered.length === 0 ? "none" : this.registered.join(", ")
    return `No broker ${this.brokerType} is registered${why}. Registered: ${known}. Give its layer to MessageBrokerFactory.layer.`
  }
}

/** No broker at all is registered: the seed's state error. The program runs without messaging. */
export class NoBrokerRegistered extends Schema.TaggedError<NoBrokerRegistered>()("NoBrokerRegistered", {
  /** Why brokers were left out on purpose, such as a setting that is missing. */
  reasons: Schema.Array(Schema.String)
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    const why = this.reasons.length === 0 ? "" : ` (${this.reasons.join("; ")})`
    return `No broker is registered${why}. Give the layer of a broker to MessageBrokerFactory.layer.`
  }
}

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
  }
>()("@eventbus/messaging/MessageBrokerFactory") {}
