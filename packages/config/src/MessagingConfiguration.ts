/**
 * The settings of `@eventbus/messaging` from a file: the roots `messaging` and `spring.kafka` of YAML, JSON or Java's `.properties`. All other
 * keys of the file are left alone.
 *
 * ```ts
 * import { MessagingConfiguration } from "@eventbus/config"
 * import { Effect } from "effect"
 *
 * export const program = Effect.gen(function* () {
 *   const { kafka } = yield* MessagingConfiguration.load("application.properties")
 *   yield* Effect.log(kafka.bootstrapServers ?? "no Kafka")
 * })
 * ```
 *
 * `ConfigurationValidation` lists all mistakes, each with its path, the value, the allowed values, and file, line and column.
 */
import { EventBusError } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Variables from "./internal/environment/variables.ts"
import * as Files from "./internal/files/files.ts"
import { rootsOf } from "./internal/files/messagingRoots.ts"
import * as Properties from "./internal/files/properties.ts"
import * as Texts from "./internal/files/texts.ts"
import * as Addresses from "./internal/schema/addresses.ts"
import { deepFreeze } from "./internal/schema/deepFreeze.ts"
import * as MessagingRules from "./internal/schema/messagingRules.ts"
import { Root } from "./internal/schema/messagingSchema.ts"
import * as Shape from "./internal/schema/shape.ts"
import * as Issues from "./internal/tree/issues.ts"
import * as Node from "./internal/tree/node.ts"
import { toNode } from "./internal/tree/plainData.ts"

/** Settings of messaging, complete and immutable. */
export interface MessagingConfiguration {
  /** `messaging.enabled`: whether the program sends and receives messages at all. */
  readonly enabled: boolean
  /** `messaging.defaultBroker`, in capitals. */
  readonly defaultBroker: string
  /** Messaging on Kafka. */
  readonly kafka: {
    /** `messaging.kafka.enabled`. */
    readonly enabled: boolean
    /** `spring.kafka.bootstrap-servers`, each `host:port`. Undefined where the file has none: the program then runs without Kafka. */
    readonly bootstrapServers: ReadonlyArray<string> | undefined
    /** `messaging.kafka.topicPrefix`. */
    readonly topicPrefix: string
    /** `spring.kafka.consumer.group-id`: the group of consumers that name none. */
    readonly groupId: string
    /** The settings that `KafkaMessaging.layer` of `@eventbus/messaging` takes. */
    readonly settings: KafkaSettings
  }
  /** Messaging on RabbitMQ. */
  readonly rabbitmq: {
    /** `messaging.rabbitmq.enabled`. */
    readonly enabled: boolean
    /** `messaging.rabbitmq.exchangePrefix`. */
    readonly exchangePrefix: string
    /** `messaging.rabbitmq.queuePrefix`. */
    readonly queuePrefix: string
  }
}

/** `KafkaSettings` of `@eventbus/messaging`, complete. Times are in milliseconds. */
export interface KafkaSettings {
  /** Partitions of a topic that is created without a number. */
  readonly defaultPartitions: number
  /** Replicas of a topic that is created without a number. */
  readonly defaultReplicationFactor: number
  /** How long a topic keeps messages that is created without a retention. */
  readonly defaultRetention: number
  /** Settings of consumers. */
  readonly consumer: {
    /** Members of the group in this process, for each consumer. */
    readonly concurrency: number
    /** Most messages of a batch. */
    readonly maxPollRecords: number
    /** Silence after which a member is removed, in milliseconds. */
    readonly sessionTimeout: number
    /** Time between two heartbeats, in milliseconds. */
    readonly heartbeatInterval: number
    /** Where a group starts that has committed nothing. */
    readonly autoOffsetReset: "earliest" | "latest"
  }
  /** Settings of the producer. */
  readonly producer: {
    /** The replicas that acknowledge a message: all in sync, or the leader. */
    readonly acks: "all" | "leader"
    /** Whether resends write a message once. True with `acks` `all`. */
    readonly idempotent: boolean
    /** How long a message may wait for company, in milliseconds. */
    readonly linger: number
    /** Most bytes of one request. */
    readonly maxBatchBytes: number
    /** How long `sendAndWait` waits, in milliseconds. */
    readonly sendTimeout: number
    /** Whether each message is written in a transaction of its own. */
    readonly transactionalEnabled: boolean
    /** Begins the `transactional.id`; a UUID follows. */
    readonly transactionalIdPrefix: string
  }
  /** How a failed message is tried again. */
  readonly retry: {
    /** Tries in all, the first one included. */
    readonly maxAttempts: number
    /** The wait after the first failure, in milliseconds. */
    readonly initialInterval: number
    /** Factor from one wait to the next. */
    readonly multiplier: number
    /** The longest single wait, in milliseconds. */
    readonly maxInterval: number
    /** Whether a message waits in a retry topic. */
    readonly retryTopicsEnabled: boolean
  }
}

/** Options of `load` and `parse`. */
export interface Options {
  /** Variables for `${NAME}`. Default `process.env` for `load`, none for `parse`. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Options of `parse`. */
export interface ParseOptions extends Options {
  /** Format of the text. Default `properties`. */
  readonly format?: "properties" | "yaml" | "json"
  /** Name of the text in issues. Default: the format. */
  readonly file?: string
}

type Format = NonNullable<ParseOptions["format"]>

const shape = Shape.make(Root.ast)

/** Reads a file: `.properties`, JSON when the name ends with `.json`, otherwise YAML. Fails with `ConfigurationValidation`, which lists all mistakes. */
export const load = Effect.fnUntraced(function* (
  path: string,
  options: Options = {}
): Effect.fn.Return<MessagingConfiguration, EventBusError.ConfigurationValidation> {
  const read = yield* Files.readBytes(path)
  const issues = Issues.make()
  if (!("bytes" in read)) {
    const allowed = ("allowed" in read && read.allowed) || "a file that can be read"
    issues.unreadable(read.problem, allowed, { file: path })
    return yield* refused(issues)
  }
  const text = Texts.decode(read.bytes, path, issues)
  if (text === undefined) return yield* refused(issues)
  const format = path.endsWith(".properties") ? "properties" : path.endsWith(".json") ? "json" : "yaml"
  return yield* parse(text, { format, file: path, env: options.env ?? process.env })
})

/** Reads a text. Fails with `ConfigurationValidation`, which lists all mistakes. */
export const parse = (
  text: string,
  { format = "properties", file = format, env = {} }: ParseOptions = {}
): Effect.Effect<MessagingConfiguration, EventBusError.ConfigurationValidation> =>
  Effect.suspend(() => {
    const issues = Issues.make()
    const tree = treeOf(text, file, format, issues)
    if (tree === undefined) return refused(issues)
    const filled = Variables.interpolate(rootsOf(tree, shape, issues), Variables.fromRecord(env), issues)
    return complete(format === "properties" ? Properties.asTexts(filled) : filled, issues)
  })

/** Reads plain data: the contents of a file as objects. Fails with `ConfigurationValidation`, which lists all mistakes. */
export const decode = (data: unknown): Effect.Effect<MessagingConfiguration, EventBusError.ConfigurationValidation> =>
  Effect.suspend(() => {
    const issues = Issues.make()
    return complete(rootsOf(toNode(data, { name: "data" }), shape, issues), issues)
  })

const treeOf = (text: string, file: string, format: Format, issues: Issues.Issues): Node.Node | undefined => {
  if (format !== "properties") return Texts.parse(text, file, format, issues)
  const source = { name: file, text: text.startsWith("\uFEFF") ? text.slice(1) : text }
  const { node, refused } = Properties.parse(source)
  for (const { found, allowed, offset } of refused) {
    issues.unreadable(found, allowed, Node.sourceLocation({ source, offset }))
  }
  return node
}

const complete = (tree: Node.Node, issues: Issues.Issues) => {
  const decoded = MessagingRules.decode(tree, issues)
  return decoded !== undefined && issues.all().length === 0
    ? Effect.succeed(deepFreeze(settingsOf(decoded)))
    : refused(issues)
}

const refused = (issues: Issues.Issues) =>
  Effect.fail(new EventBusError.ConfigurationValidation({ issues: issues.all() }))

type Decoded = (typeof Root)["Type"]

const settingsOf = ({ messaging, spring }: Decoded): MessagingConfiguration => {
  const { enabled, defaultBroker, kafka, rabbitmq } = messaging
  const { bootstrapServers, consumer, producer } = spring.kafka
  const isAll = producer.acks === "all" || Number(producer.acks) === -1
  const { retry } = kafka
  return {
    ...{ enabled, defaultBroker: defaultBroker.toUpperCase(), rabbitmq },
    kafka: {
      ...{ enabled: kafka.enabled, topicPrefix: kafka.topicPrefix, groupId: consumer.groupId },
      bootstrapServers: bootstrapServers === undefined ? undefined : Addresses.parse(bootstrapServers),
      settings: {
        defaultPartitions: kafka.defaultPartitions,
        defaultReplicationFactor: kafka.defaultReplicationFactor,
        defaultRetention: kafka.defaultRetentionMs,
        consumer: {
          concurrency: kafka.consumer.concurrency,
          maxPollRecords: kafka.consumer.maxPollRecords,
          sessionTimeout: kafka.consumer.sessionTimeoutMs,
          heartbeatInterval: kafka.consumer.heartbeatIntervalMs,
          autoOffsetReset: consumer.autoOffsetReset
        },
        producer: {
          ...{ acks: isAll ? "all" : "leader", idempotent: isAll },
          linger: producer.lingerMs,
          maxBatchBytes: producer.batchSize,
          sendTimeout: kafka.producer.sendTimeoutSeconds * 1_000,
          transactionalEnabled: kafka.producer.transactionalEnabled,
          transactionalIdPrefix: kafka.producer.transactionalIdPrefix
        },
        retry: {
          ...{ maxAttempts: retry.maxAttempts, initialInterval: retry.initialIntervalMs },
          ...{ multiplier: retry.multiplier, maxInterval: retry.maxIntervalMs },
          retryTopicsEnabled: retry.retryTopicsEnabled
        }
      }
    }
  }
}
