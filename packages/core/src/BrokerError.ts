/**
 * Everything that can go wrong at the Broker port, as tagged errors.
 *
 * Each error says whether repeating the same call can help (`retryable`), names the thing that it is about, and its message says
 * what to do. An adapter maps every failure of its client to one of these; nothing else crosses the port.
 */
import * as Schema from "effect/Schema"

/** No broker answers, or the connection broke. Retrying helps once a broker is back. */
export class BrokerUnavailable extends Schema.TaggedError<BrokerUnavailable>()("BrokerUnavailable", {
  /** The addresses that were tried, `host:port`. */
  brokers: Schema.Array(Schema.String),
  /** The reason, as the client reports it. */
  detail: Schema.String
}) {
  /** Repeating the same call can help. */
  readonly retryable = true
  override get message(): string {
    return `No broker of [${this.brokers.join(", ")}] can be reached: ${this.detail}. Check the address, the listener and that the broker runs.`
  }
}

/** A request got no answer in time. Whether it took effect is unknown. */
export class RequestTimedOut extends Schema.TaggedError<RequestTimedOut>()("RequestTimedOut", {
  /** The operation, such as `publish` or `commit`. */
  operation: Schema.String,
  /** How long the client waited, in milliseconds. */
  millis: Schema.Number
}) {
  /** Repeating the same call can help. */
  readonly retryable = true
  override get message(): string {
    return `${this.operation} got no answer within ${this.millis} ms; it may or may not have taken effect.`
  }
}

/** SASL credentials were refused (wrong user, password, token or mechanism). */
export class AuthenticationFailed extends Schema.TaggedError<AuthenticationFailed>()("AuthenticationFailed", {
  /** The SASL mechanism, such as `scram-sha-512`. */
  mechanism: Schema.String,
  /** The reason, as the broker reports it. Secrets are redacted. */
  detail: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `Authentication by ${this.mechanism} was refused: ${this.detail}. Check user name, password or token, and that the listener offers this mechanism.`
  }
}

/** A password, key or token could not be had, so nothing was tried. Retrying helps once its file, variable or server is back. */
export class CredentialsUnavailable extends Schema.TaggedError<CredentialsUnavailable>()("CredentialsUnavailable", {
  /** The secret that is missing, and why. Never its value. */
  detail: Schema.String
}) {
  /** Repeating the same call can help. */
  readonly retryable = true
  override get message(): string {
    return `The credentials are not available: ${this.detail}.`
  }
}

/** The TLS handshake failed, for example because the certificate's authority is unknown. */
export class TlsFailed extends Schema.TaggedError<TlsFailed>()("TlsFailed", {
  /** The addresses that were tried, `host:port`. */
  brokers: Schema.Array(Schema.String),
  /** The reason, as the TLS layer reports it. */
  detail: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `TLS with [${this.brokers.join(", ")}] failed: ${this.detail}. Give the broker's certificate authority as \`ssl.ca\`, a host name that its certificate names, and a client certificate (\`ssl.cert\`, \`ssl.key\`) where the listener wants one.`
  }
}

/** An ACL denies the operation. */
export class AuthorizationFailed extends Schema.TaggedError<AuthorizationFailed>()("AuthorizationFailed", {
  /** The type of the resource, by Kafka's names. */
  resource: Schema.Literals(["topic", "group", "cluster", "transactionalId"]),
  /** The name of the resource. */
  name: Schema.String,
  /** The operation that the ACL denies, such as `read`. */
  operation: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `Not allowed to ${this.operation} ${this.resource} '${this.name}'. Grant the ACL to this user.`
  }
}

/** The topic (or the partition of it) does not exist. Retryable: creating the topic heals it without a restart. */
export class UnknownTopic extends Schema.TaggedError<UnknownTopic>()("UnknownTopic", {
  /** The topic that was asked for. */
  topic: Schema.String,
  /** The partition that does not exist. Absent when the whole topic does not. */
  partition: Schema.optionalKey(Schema.Int)
}) {
  /** Repeating the same call can help. */
  readonly retryable = true
  override get message(): string {
    const what =
      this.partition === undefined ? `Topic '${this.topic}'` : `Partition ${this.partition} of topic '${this.topic}'`
    return `${what} does not exist. Create it, or correct the name.`
  }
}

/** The name is not a legal topic name. */
export class InvalidTopic extends Schema.TaggedError<InvalidTopic>()("InvalidTopic", {
  /** The name that was refused. */
  topic: Schema.String,
  /** The rule that the name breaks. */
  detail: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `'${this.topic}' is not a legal topic name: ${this.detail}. Allowed are 1 to 249 of the characters a-z A-Z 0-9 . _ - except '.' and '..'.`
  }
}

/** `createTopics` met a topic that is there already. */
export class TopicExists extends Schema.TaggedError<TopicExists>()("TopicExists", {
  /** The topic that exists. */
  topic: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `Topic '${this.topic}' exists already.`
  }
}

/** The record (or its batch) is larger than the topic's `max.message.bytes`. Retrying cannot help. */
export class RecordTooLarge extends Schema.TaggedError<RecordTooLarge>()("RecordTooLarge", {
  /** The topic that the record was for. */
  topic: Schema.String,
  /** Size of the record, in bytes. */
  bytes: Schema.Number,
  /** The topic's `max.message.bytes`, where it is known. */
  maxBytes: Schema.optionalKey(Schema.Number)
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    const taken = this.maxBytes === undefined ? "takes" : `takes, which is ${this.maxBytes}`
    return `A record of ${this.bytes} bytes is larger than topic '${this.topic}' ${taken}. Raise \`max.message.bytes\` of the topic or send less.`
  }
}

/** The record cannot be sent as it is (illegal header, unknown partition, refused by the broker as invalid). */
export class RecordRejected extends Schema.TaggedError<RecordRejected>()("RecordRejected", {
  /** The topic that the record was for. */
  topic: Schema.String,
  /** The reason for the refusal. */
  detail: Schema.String,
  /** The part of the record that was refused, where it is known. `timestamp`: the topic does not accept its time. */
  field: Schema.optionalKey(Schema.Literals(["timestamp"]))
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `A record for topic '${this.topic}' was rejected: ${this.detail}.`
  }
}

/** The group or transaction coordinator moved or is still loading. */
export class CoordinatorUnavailable extends Schema.TaggedError<CoordinatorUnavailable>()("CoordinatorUnavailable", {
  /** The reason, as the broker reports it. */
  detail: Schema.String
}) {
  /** Repeating the same call can help. */
  readonly retryable = true
  override get message(): string {
    return `The coordinator is not available at the moment: ${this.detail}.`
  }
}

/** The group is rebalancing; the commit may be repeated when that is over, if the partition stays. */
export class RebalanceInProgress extends Schema.TaggedError<RebalanceInProgress>()("RebalanceInProgress", {
  /** The group that is rebalancing. */
  groupId: Schema.String
}) {
  /** Repeating the same call can help. */
  readonly retryable = true
  override get message(): string {
    return `Group '${this.groupId}' is rebalancing.`
  }
}

/**
 * A commit for an assignment that is over: the partition was revoked, lost, or belongs to a newer generation. Repeating it can
 * never help, and must not: the new owner decides now.
 */
export class StaleAssignment extends Schema.TaggedError<StaleAssignment>()("StaleAssignment", {
  /** The group of the commit. */
  groupId: Schema.String,
  /** The partitions whose assignment is over, `topic-partition`. */
  partitions: Schema.Array(Schema.String)
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `Group '${this.groupId}': the assignment of [${this.partitions.join(", ")}] is over; nothing was committed for it.`
  }
}

/** Another producer with the same transactional id took over. This one must be closed. */
export class ProducerFenced extends Schema.TaggedError<ProducerFenced>()("ProducerFenced", {
  /** The `transactional.id` that the other producer took over. */
  transactionalId: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `The producer of transactional id '${this.transactionalId}' was fenced by a newer one.`
  }
}

/** Two members used the same `groupInstanceId`; this one was fenced off. */
export class InstanceFenced extends Schema.TaggedError<InstanceFenced>()("InstanceFenced", {
  /** The group of both members. */
  groupId: Schema.String,
  /** The `group.instance.id` that both members used. */
  groupInstanceId: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `Another member of group '${this.groupId}' joined as '${this.groupInstanceId}'. Each consumer needs a group.instance.id of its own.`
  }
}

/** An answer that fits none of the others. */
export class UnexpectedBrokerError extends Schema.TaggedError<UnexpectedBrokerError>()("UnexpectedBrokerError", {
  /** The operation that failed. */
  operation: Schema.String,
  /** Kafka's name of the error, or the client's. */
  code: Schema.String,
  /** The message of the error. */
  detail: Schema.String,
  /** Whether repeating the same call can help. */
  retryable: Schema.Boolean
}) {
  override get message(): string {
    return `${this.operation} failed with ${this.code}: ${this.detail}`
  }
}

/** Any failure at the Broker port. */
export type BrokerError =
  | BrokerUnavailable
  | RequestTimedOut
  | AuthenticationFailed
  | CredentialsUnavailable
  | TlsFailed
  | AuthorizationFailed
  | UnknownTopic
  | InvalidTopic
  | TopicExists
  | RecordTooLarge
  | RecordRejected
  | CoordinatorUnavailable
  | RebalanceInProgress
  | StaleAssignment
  | ProducerFenced
  | InstanceFenced
  | UnexpectedBrokerError
