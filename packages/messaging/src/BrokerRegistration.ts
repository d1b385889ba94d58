/**
 * Errors of the brokers that a program registers, or asks for.
 */
import * as Schema from "effect/Schema"

/** No broker of this kind is registered. */
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

/** No broker at all is registered. The program runs without messaging. */
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

/** Two layers provide the same kind of broker. */
export class InvalidBrokers extends Schema.TaggedError<InvalidBrokers>()("InvalidBrokers", {
  /** The mistake, for people. */
  detail: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return this.detail
  }
}
