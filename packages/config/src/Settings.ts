/**
 * Every key of a configuration, with its default, range and meaning (connector seed §4.1): one schema for files, variables, code and requests.
 *
 * Names are those of the options in code, `Ms` behind durations; defaults are core's. The seed's names for the same (`tier0`, `dlt`) are aliases. A file writes a name as it
 * is here (`groupId`) or in kebab case (`group-id`), and may leave out the `Ms` of a duration. Times are milliseconds here; a file writes a number of them, or `1m 30s`.
 */
import { Broker, Choices, Defaults, Ranges, Time } from "@eventbus/core"
import * as Schema from "effect/Schema"
import { CircuitBreaker } from "./internal/schema/breakerSchema.ts"
import { Cluster } from "./internal/schema/clusterSchema.ts"
import {
  duration,
  flag,
  oneOf,
  section,
  text,
  topicName,
  topicNames,
  whole,
  withDefault
} from "./internal/schema/leaves.ts"
import { Audit, Fleet } from "./internal/schema/operatingSchema.ts"
import { alias, renamedFrom } from "./internal/schema/otherNames.ts"
import { PerKey } from "./internal/schema/perKeySchema.ts"
import { Retry } from "./internal/schema/retrySchema.ts"

export { CircuitBreaker } from "./internal/schema/breakerSchema.ts"
export { Audit, Fleet } from "./internal/schema/operatingSchema.ts"
export { PerKey } from "./internal/schema/perKeySchema.ts"
export { Blocking, Retry, Tier } from "./internal/schema/retrySchema.ts"
export { parse as parseTime, parseCutoff, parsePast } from "./internal/schema/times.ts"

/** The milliseconds of a duration as a file writes it, such as `10s`, `1m 30s`, `10 seconds` or `PT10S`; NaN for any other text. */
export const parseDuration: (text: string) => number = Time.parse

/** A key that may be absent, without a value then. */
const optional = Schema.optionalKey

const { deadLetter } = Defaults
const { deadLetter: deadLetterRange } = Ranges

/** The strategy for dead letters, and how they look. */
export const DeadLetter = section("What becomes of dead letters.", {
  topic: optional(topicName("Full name of the dead letter topic; topicSuffix gives way. Default: what `naming` says.")),
  topicSuffix: optional(topicName("Its name behind `{topic}.`. Default: what `naming` says, `DLT`.")),
  strategy: oneOf("ALERT_AND_STORE and CUSTOM need the handler's onDeadLetter.", [
    "STORE_ONLY",
    "ALERT_AND_STORE",
    "SCHEDULED_REPLAY",
    "CUSTOM"
  ]).pipe(withDefault(deadLetter.strategy)),
  alertTimeoutMs: duration("How long an alert may take.", deadLetterRange.alertTimeout).pipe(
    withDefault(deadLetter.alertTimeoutMillis)
  ),
  replay: section("Replays: maxReplays and origins of every strategy and command, the others of SCHEDULED_REPLAY.", {
    maxReplays: whole(
      "A record that was replayed so often stays, whatever the strategy, and whoever replays.",
      deadLetterRange.maxReplays
    ).pipe(withDefault(deadLetter.maxReplays)),
    cooldownMs: duration("Records younger than this wait.", deadLetterRange.cooldown).pipe(
      withDefault(deadLetter.cooldownMillis)
    ),
    batchSize: whole("Most records of one run.", deadLetterRange.batchSize).pipe(withDefault(deadLetter.batchSize)),
    origins: Schema.Array(topicName("A topic that dead letters came from."))
      .annotate({ description: "Further topics that replays may publish to, beside the main topic." })
      .pipe(withDefault([]))
  }).pipe(withDefault({})),
  headers: section("Other systems' headers beside ours. Default: none.", {
    spring: optional(oneOf("Spring Kafka's, with its binary encodings.", Choices.deadLetter.spring)),
    brokers: flag("The five headers of the brokers package.").pipe(withDefault(false)),
    trailJson: flag("`x-eventbus-trail`, the tiers as JSON.").pipe(withDefault(false))
  }).pipe(withDefault({}))
})

const required = {
  topic: topicNames("The Kafka topic to read, or a list of topics, each with retry and dead letter topics of its own."),
  groupId: text("The consumer group.")
}

const { binding } = Defaults
const { binding: range } = Ranges

const common = {
  handler: optional(text("Name of the handler. Default: the binding's name.")),
  listenerType: oneOf(
    "SINGLE: offsets are acknowledged record by record; BATCH: per batch.",
    Choices.binding.listenerType
  ).pipe(withDefault(binding.listenerType)),
  ackMode: oneOf(
    "MANUAL_IMMEDIATE commits before the next record, MANUAL in the background.",
    Choices.binding.ackMode
  ).pipe(withDefault(binding.ackMode)),
  commitIntervalMs: duration("How long MANUAL gathers finished offsets.", range.commitInterval).pipe(
    withDefault(binding.commitIntervalMillis)
  ),
  concurrency: whole("Consumers (group members) in this process.", range.concurrency).pipe(
    withDefault(binding.concurrency)
  ),
  maxPollRecords: optional(
    whole(
      `\`max.poll.records\`, most records of a batch. Default ${Defaults.binding.maxPollRecords.SINGLE} for SINGLE, ${Defaults.binding.maxPollRecords.BATCH} for BATCH.`,
      range.maxPollRecords
    )
  ),
  maxPollIntervalMs: duration("`max.poll.interval.ms`: a delivery may take 70 % of it.", range.maxPollInterval).pipe(
    withDefault(binding.maxPollIntervalMillis)
  ),
  sessionTimeoutMs: duration(
    "`session.timeout.ms`: 3 x heartbeatIntervalMs or more; brokers take 6 s and more by default.",
    range.sessionTimeout
  ).pipe(withDefault(binding.sessionTimeoutMillis)),
  heartbeatIntervalMs: duration("`heartbeat.interval.ms`.", range.heartbeatInterval).pipe(
    withDefault(binding.heartbeatIntervalMillis)
  ),
  rebalanceTimeoutMs: duration(
    "`rebalance.timeout.ms`: how long giving up a partition may take.",
    range.rebalanceTimeout
  ).pipe(withDefault(binding.rebalanceTimeoutMillis)),
  fetchMaxWaitMs: duration("`fetch.max.wait.ms`.", range.fetchMaxWait).pipe(
    withDefault(binding.fetchMaxWaitMillis),
    renamedFrom("maxWaitMs")
  ),
  maxPartitionFetchBytes: whole("`max.partition.fetch.bytes`.", range.maxPartitionFetchBytes).pipe(
    withDefault(binding.maxPartitionFetchBytes),
    renamedFrom("maxBytesPerPartition")
  ),
  autoStartup: flag("Start on registration.").pipe(withDefault(binding.autoStartup)),
  groupProtocol: oneOf(
    "`group.protocol`; `consumer` (Kafka 4.0): the broker assigns, and the group has its own session timeout and heartbeat interval.",
    Choices.binding.groupProtocol
  ).pipe(withDefault(binding.groupProtocol)),
  staticMembership: flag("`group.instance.id` is `{binding}__{hostname}__{index}`.").pipe(
    withDefault(binding.staticMembership)
  ),
  partitionAssignmentStrategy: Schema.Array(oneOf("An assignment protocol.", Broker.assignmentStrategies))
    .annotate({
      description:
        "`partition.assignment.strategy`: assignment protocols of the members, the preferred one first; those of another client to share the group with it. Default: the connector's own."
    })
    .pipe(withDefault([...binding.partitionAssignmentStrategy])),
  cluster: text("Alias of the cluster.").pipe(withDefault(binding.cluster)),
  autoOffsetReset: oneOf("Where a group without a committed offset starts.", Choices.binding.autoOffsetReset).pipe(
    withDefault(binding.autoOffsetReset)
  ),
  isolationLevel: oneOf("`isolation.level`.", Choices.binding.isolationLevel).pipe(
    withDefault(binding.isolationLevel),
    renamedFrom("isolation")
  ),
  processingOrder: oneOf(
    "What may overlap inside a partition; `partition`: nothing.",
    Choices.binding.processingOrder
  ).pipe(withDefault(binding.processingOrder)),
  maxInFlight: optional(
    whole(
      `Handlers running at once over the whole binding. Default: no limit for processingOrder partition, else ${Defaults.binding.maxInFlight.key}.`,
      range.maxInFlight
    )
  ),
  maxBufferedRecords: whole("Records fetched but not handled, per consumer.", range.maxBufferedRecords).pipe(
    withDefault(binding.maxBufferedRecords)
  ),
  copyCompression: oneOf(
    "The codec of copies in retry and dead letter topics; `source`: that of the batch that the record was read from.",
    Choices.binding.copyCompression
  ).pipe(withDefault(binding.copyCompression)),
  maxBufferedBytes: whole("The same in bytes.", range.maxBufferedBytes).pipe(withDefault(binding.maxBufferedBytes)),
  batchFailureStrategy: oneOf(
    "Of BATCH, when a record has used up its attempts.",
    Choices.binding.batchFailureStrategy
  ).pipe(withDefault(binding.batchFailureStrategy)),
  orderingMode: oneOf(
    "STRICT: no record overtakes another, so no tiers. PER_KEY: none overtakes another of its key, so a key with failing records is slow.",
    Choices.binding.orderingMode
  ).pipe(withDefault(binding.orderingMode)),
  perKey: optional(PerKey),
  onExhausted: oneOf(
    "What happens when all attempts are used up; halt with STRICT only.",
    Choices.binding.onExhausted
  ).pipe(withDefault(binding.onExhausted)),
  adopts: Schema.Array(text("A former name of the group."))
    .annotate({
      description: "Former names of the group: their copies in retry and dead letter topics are its own. Default: none."
    })
    .pipe(withDefault([])),
  naming: oneOf("How retry and dead letter topics are called.", ["standard", "dotted", "dashed", "perGroup"]).pipe(
    withDefault("standard")
  ),
  missingTopics: oneOf(
    "`create` makes missing retry and dead letter topics, `wait` keeps the record, `require` reads nothing before they are there.",
    Choices.binding.missingTopics
  ).pipe(withDefault(binding.missingTopics)),
  logKeys: flag(
    "Log lines about a record that was not handled name its key. Leave it off where keys are personal data."
  ).pipe(withDefault(binding.logKeys)),
  shutdownTimeoutMs: duration("How long a stop may take as a whole.", range.shutdownTimeout).pipe(
    withDefault(binding.shutdownTimeoutMillis)
  ),
  retry: Retry.pipe(withDefault({})),
  circuitBreaker: CircuitBreaker.pipe(withDefault({})),
  deadLetter: DeadLetter.pipe(withDefault({}), alias("dlt"))
}

/** TopicBindingProperties of the seed. */
export const Binding = section("What a group reads: one topic, or several.", { ...required, ...common })

/** Settings of all bindings of a file. Each binding may override them. */
export const BindingDefaults = section("Settings of all bindings; each binding's own win.", {
  topic: optional(required.topic),
  groupId: optional(required.groupId),
  ...common
})

/** A whole file. */
export const Root = section("Configuration of the Event Bus Connector.", {
  include: optional(
    Schema.Union([text("A file."), Schema.Array(text("A file."))]).annotate({
      description: "Files that this one is laid over, relative to it; later ones over earlier ones."
    })
  ),
  eventbus: section("The connector.", {
    clusters: optional(
      Schema.Record(Schema.String, Cluster).annotate({
        description: "Clusters by alias. `default` is the one of bindings that name none."
      })
    ),
    fleet: optional(Fleet),
    audit: optional(Audit),
    defaults: optional(BindingDefaults),
    bindings: Schema.Record(Schema.String, Binding).annotate({ description: "Bindings by name." })
  })
})
