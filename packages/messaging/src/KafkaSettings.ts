/**
 * The settings of messaging on Kafka, each with its default. `MessagingConfig` reads
 * them from files.
 */
import type { ProducerOptions } from "@eventbus/core/Broker"
import * as Choices from "@eventbus/core/Choices"
import * as Kinds from "@eventbus/core/Kinds"
import * as Ranges from "@eventbus/core/Ranges"
import type { Time } from "@eventbus/core/Time"
import * as MessageRetry from "./MessageRetry.ts"

/** Settings of consumers. */
export interface ConsumerSettings {
  /** Members of the group in this process, for each consumer. 1 or more. Default 3. */
  readonly concurrency?: number
  /** Most messages of a batch (Kafka: `max.poll.records`), 1 or more. Default 500. */
  readonly maxPollRecords?: number
  /** Kafka: `session.timeout.ms`. 1 second or more, at least three times `heartbeatInterval`. Default 30 seconds. */
  readonly sessionTimeout?: Time
  /** Kafka: `heartbeat.interval.ms`. 100 ms or more. Default 10 seconds. */
  readonly heartbeatInterval?: Time
  /** Where a group starts that has committed nothing. Kafka: `auto.offset.reset`. Default `earliest`. */
  readonly autoOffsetReset?: "earliest" | "latest"
}

/** Settings of the producer. */
export interface ProducerSettings extends ProducerOptions {
  /** How long `sendAndWait` waits for the acknowledgement. 1 ms or more. Default 30 seconds. */
  readonly sendTimeout?: Time
  /** Whether each message is written in a transaction of its own, so that readers of `read_committed` never see one that was not acknowledged. It costs a round trip more. Default false. */
  readonly transactionalEnabled?: boolean
  /** Begins the `transactional.id`; a UUID follows. Default `unraveldocs-tx-`. */
  readonly transactionalIdPrefix?: string
}

/** Settings of messaging on Kafka. */
export interface KafkaSettings {
  /** The alias of the Kafka cluster, one of `Clusters`. Default `default`. */
  readonly cluster?: string
  /** Partitions of a topic that is created without a number. 1 or more. Default 3. */
  readonly defaultPartitions?: number
  /** Replicas of a topic that is created without a number. 1 to 32767. Default 1. */
  readonly defaultReplicationFactor?: number
  /** How long a topic keeps messages that is created without a retention. 1 ms or more. Default 7 days. */
  readonly defaultRetention?: Time
  /** Settings of consumers. */
  readonly consumer?: ConsumerSettings
  /** Settings of the producer. Defaults beside those of `ProducerOptions`: acks `all`, idempotent, snappy, a linger of 5 ms, 16 KiB a request. */
  readonly producer?: ProducerSettings
  /** How a failed message is tried again, for consumers that say nothing else. */
  readonly retry?: MessageRetry.Options
}

const wait: Ranges.Range = { minimum: 1, maximum: Number.MAX_SAFE_INTEGER, kind: "duration" }

const consumer = {
  concurrency: Ranges.binding.concurrency,
  maxPollRecords: Ranges.binding.maxPollRecords,
  sessionTimeout: Ranges.binding.sessionTimeout,
  heartbeatInterval: Ranges.binding.heartbeatInterval,
  autoOffsetReset: Kinds.oneOf(Choices.binding.autoOffsetReset)
}

const producer = {
  ...Ranges.producer,
  acks: Kinds.oneOf(["all", "leader"]),
  idempotent: Kinds.flag,
  compression: Kinds.oneOf(Choices.compression),
  sendTimeout: { ...wait, maximum: 2_147_483_647 },
  transactionalEnabled: Kinds.flag,
  transactionalIdPrefix: Kinds.string
}

const kind: Kinds.Kind = Kinds.struct({
  cluster: Kinds.name,
  defaultPartitions: Ranges.retry.partitions,
  defaultReplicationFactor: Ranges.retry.replicationFactor,
  defaultRetention: wait,
  consumer: Kinds.struct(consumer),
  producer: Kinds.struct(producer),
  retry: MessageRetry.kind
})

/** The settings with their defaults. */
export interface Complete {
  /** The alias of the cluster. */
  readonly cluster: string
  /** The defaults of topics that are created. */
  readonly topics: {
    /** Partitions. */
    readonly partitions: number
    /** Replicas of each partition. */
    readonly replicationFactor: number
    /** How long messages are kept, in milliseconds. */
    readonly retentionMillis: number
  }
  /** Settings of consumers. */
  readonly consumer: Required<ConsumerSettings>
  /** Settings of the producer, as the Broker port takes them. */
  readonly producer: ProducerOptions
  /** The limit of `sendAndWait`, in milliseconds. */
  readonly sendTimeoutMillis: number
  /** The prefix of the transactional id; undefined without transactions. */
  readonly transactionalIdPrefix: string | undefined
  /** The retry of consumers that say nothing else. */
  readonly retry: MessageRetry.MessageRetry
}

/** Settings with their defaults. Throws `ConfigurationValidation` that names every setting that is out of its range. */
export const complete = (settings: KafkaSettings = {}): Complete => {
  Kinds.refuse(kind("kafka", settings))
  const { sendTimeout, transactionalEnabled, transactionalIdPrefix, ...options } = settings.producer ?? {}
  return {
    cluster: settings.cluster ?? "default",
    topics: {
      partitions: settings.defaultPartitions ?? 3,
      replicationFactor: settings.defaultReplicationFactor ?? 1,
      retentionMillis: Ranges.millisOf(settings.defaultRetention ?? 604_800_000)
    },
    consumer: {
      ...{ concurrency: 3, maxPollRecords: 500, sessionTimeout: 30_000, heartbeatInterval: 10_000 },
      ...{ autoOffsetReset: "earliest", ...settings.consumer }
    },
    producer: { acks: "all", idempotent: true, compression: "snappy", linger: 5, maxBatchBytes: 16_384, ...options },
    sendTimeoutMillis: Ranges.millisOf(sendTimeout ?? 30_000),
    transactionalIdPrefix: transactionalEnabled === true ? (transactionalIdPrefix ?? "unraveldocs-tx-") : undefined,
    retry: MessageRetry.make(settings.retry)
  }
}
