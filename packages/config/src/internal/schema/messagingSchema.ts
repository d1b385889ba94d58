/**
 * The roots `messaging` and `spring.kafka`, each key with its default.
 */
import { Choices, Ranges } from "@eventbus/core"
import * as Schema from "effect/Schema"
import {
  addressesOrNone,
  decimal,
  duration,
  flag,
  oneOf,
  section,
  text,
  topicName,
  whole,
  withDefault
} from "./leaves.ts"

const millis: Ranges.Range = { minimum: 1, maximum: 2_147_483_647, kind: "duration" }

const KafkaConsumer = section("Consumers.", {
  concurrency: whole("Members of the group in this process, for each consumer.").pipe(withDefault(3)),
  maxPollRecords: whole("Most messages of a batch.").pipe(withDefault(500)),
  sessionTimeoutMs: duration(
    "A member that is silent for so long is removed; at least three times the heartbeat interval.",
    Ranges.binding.sessionTimeout
  ).pipe(withDefault(30_000)),
  heartbeatIntervalMs: duration("Time between two heartbeats.", Ranges.binding.heartbeatInterval).pipe(
    withDefault(10_000)
  )
})

const KafkaProducer = section("The producer.", {
  sendTimeoutSeconds: whole("How long `sendAndWait` waits for the acknowledgement, in seconds.", {
    ...{ minimum: 1, maximum: 2_147_483, kind: "whole" }
  }).pipe(withDefault(30)),
  transactionalEnabled: flag("Whether each message is written in a transaction of its own.").pipe(withDefault(false)),
  transactionalIdPrefix: text("Begins the `transactional.id`; a UUID follows.").pipe(withDefault("unraveldocs-tx-"))
})

const KafkaRetry = section("How a failed message is tried again.", {
  maxAttempts: whole("Tries in all, the first one included; 1 means no retry.", {
    ...{ minimum: 1, maximum: 1_000, kind: "whole" }
  }).pipe(withDefault(3)),
  initialIntervalMs: duration("The wait after the first failure.", millis).pipe(withDefault(1_000)),
  multiplier: decimal("Factor from one wait to the next.", Ranges.retry.blocking.multiplier).pipe(withDefault(2)),
  maxIntervalMs: duration("The longest single wait, at least the first one.", millis).pipe(withDefault(30_000)),
  retryTopicsEnabled: flag("Whether a message waits in a retry topic, and those behind it go on.").pipe(
    withDefault(true)
  )
})

const Kafka = section("Messaging on Kafka.", {
  enabled: flag("Whether Kafka is used.").pipe(withDefault(true)),
  topicPrefix: topicName("Begins the names of the program's topics.").pipe(withDefault("unraveldocs")),
  defaultPartitions: whole("Partitions of a topic that is created without a number.", Ranges.retry.partitions).pipe(
    withDefault(3)
  ),
  defaultReplicationFactor: whole(
    "Replicas of a topic that is created without a number.",
    Ranges.retry.replicationFactor
  ).pipe(withDefault(1)),
  defaultRetentionMs: duration("How long a topic keeps messages that is created without a retention.", {
    ...{ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, kind: "duration" }
  }).pipe(withDefault(604_800_000)),
  consumer: KafkaConsumer.pipe(withDefault({})),
  producer: KafkaProducer.pipe(withDefault({})),
  retry: KafkaRetry.pipe(withDefault({}))
})

const RabbitMq = section("Messaging on RabbitMQ.", {
  enabled: flag("Whether RabbitMQ is used.").pipe(withDefault(false)),
  exchangePrefix: text("Begins the names of exchanges.").pipe(withDefault("unraveldocs")),
  queuePrefix: text("Begins the names of queues.").pipe(withDefault("unraveldocs"))
})

const Messaging = section("Messaging, whatever the broker is.", {
  defaultBroker: text("The default broker, where it is registered: KAFKA, RABBITMQ, or one of your own.").pipe(
    withDefault("KAFKA")
  ),
  enabled: flag("Whether the program sends and receives messages at all.").pipe(withDefault(true)),
  kafka: Kafka.pipe(withDefault({})),
  rabbitmq: RabbitMq.pipe(withDefault({}))
})

const SpringConsumer = section("Consumers.", {
  groupId: text("The group of consumers that name none.").pipe(withDefault("unraveldocs-group")),
  autoOffsetReset: oneOf("Where a group starts that has committed nothing.", Choices.binding.autoOffsetReset).pipe(
    withDefault("earliest")
  ),
  enableAutoCommit: Schema.Literal(false)
    .annotate({
      ...{ allowed: "false: a message is acknowledged when it is handled", json: { const: false, type: "boolean" } },
      description: "Whether offsets are committed whatever the handler does."
    })
    .pipe(withDefault(false))
})

const acks = Schema.Literals(["all", "-1", "1", -1, 1]).annotate({
  ...{ allowed: "all, which is -1, or 1", json: { enum: ["all", "-1", "1", -1, 1] } },
  description:
    "The replicas that acknowledge a message: all in sync, or the leader. 0, which acknowledges nothing, is refused."
})

const SpringProducer = section("The producer.", {
  retries: whole(
    "Read for the sake of Spring's files: a send is repeated until the delivery timeout of 2 minutes, however often that is.",
    { minimum: 0, maximum: 2_147_483_647, kind: "whole" }
  ).pipe(withDefault(3)),
  acks: acks.pipe(withDefault("all")),
  batchSize: whole("Most bytes of one batch.").pipe(withDefault(16_384)),
  lingerMs: duration("How long a message may wait for company.", Ranges.producer.linger).pipe(withDefault(5)),
  bufferMemory: whole(
    "Read for the sake of Spring's files: what waits to be sent is held by the callers, which wait for their results.",
    { minimum: 1, maximum: Number.MAX_SAFE_INTEGER, kind: "whole" }
  ).pipe(withDefault(33_554_432))
})

const SpringKafka = section("How to reach Kafka, by the keys of Spring.", {
  bootstrapServers: Schema.optionalKey(
    addressesOrNone("Where Kafka is. Empty, or by default: nowhere; the program then runs without it.")
  ),
  consumer: SpringConsumer.pipe(withDefault({})),
  producer: SpringProducer.pipe(withDefault({}))
})

/** Both roots. Other roots of a file are somebody else's. */
export const Root = section("Settings of messaging.", {
  messaging: Messaging.pipe(withDefault({})),
  spring: section("Spring's keys.", { kafka: SpringKafka.pipe(withDefault({})) }).pipe(withDefault({}))
})
