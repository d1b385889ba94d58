/**
 * The metrics of the connector (connector seed §4.13): every binding has them, without opt-in, in Effect's `Metric` registry, where any exporter finds them.
 *
 * Each binding also reports under OpenTelemetry's names for messaging. A series ends with what it is about: a partition's when it is given up, a run's when the
 * binding stops. Labels are bounded: 50 exception classes per binding, all further ones as `other`, and never a key, a value or a message of a record.
 */
import * as Context from "effect/Context"

/** A metric of the connector. Exporters, dashboards and documentation are made from it. */
export interface Definition {
  /** As in Effect's registry and in OpenTelemetry. */
  readonly name: string
  /** Its kind, by OpenTelemetry's names. */
  readonly kind: "counter" | "gauge" | "histogram"
  /** `s` for seconds; otherwise a number of things. */
  readonly unit?: "s"
  /** One sentence for dashboards and exporters. */
  readonly description: string
  /** The names of its labels. */
  readonly labels: ReadonlyArray<string>
}

/** The values of a timer or of sizes in buckets, for metrics of your own that count for every record: observing a value takes a few comparisons. */
export { type Histogram, make as makeHistogram } from "./internal/observe/histogram.ts"

const ofBinding = ["cluster", "binding"] as const
const ofPartition = [...ofBinding, "topic", "partition"] as const
const ofConvention = [
  "messaging.system",
  "messaging.consumer.group.name",
  "eventbus.cluster",
  "eventbus.binding"
] as const

const define = <const D extends Definition>(definition: D): D => definition

/** Every metric, by a name for code: `Metrics.definitions.consumerLag.name` is the name in the registry. */
export const definitions = {
  /** Records whose handler succeeded, by the topic that they were read from. */
  recordsProcessed: define({
    name: "eventbus.records.processed",
    kind: "counter",
    description: "Records whose handler succeeded",
    labels: ofPartition
  }),
  /**
   * Deliveries that failed: the record was routed, dead-lettered or skipped, or it halted its partition. One for each, however many attempts it took. A record that a
   * retry in place handled did not fail. `exception` is the class of the last error, or `other` beyond 50 classes.
   */
  recordsFailed: define({
    name: "eventbus.records.failed",
    kind: "counter",
    description: "Failed deliveries, by class of the last error",
    labels: [...ofBinding, "topic", "exception"]
  }),
  /** Records whose copy is acknowledged in the dead letter topic. `reason` is that of the dead letter's headers. */
  recordsDeadLettered: define({
    name: "eventbus.records.dlq",
    kind: "counter",
    description: "Records stored in the dead letter topic",
    labels: [...ofBinding, "topic", "reason"]
  }),
  /** Records whose copy is acknowledged in a retry topic; `tier` is the one that they went to. */
  recordsRouted: define({
    name: "eventbus.records.routed",
    kind: "counter",
    description: "Records routed to a retry topic",
    labels: [...ofBinding, "topic", "tier"]
  }),
  /** Records that were dropped on purpose, duplicates included. */
  recordsSkipped: define({
    name: "eventbus.records.skipped",
    kind: "counter",
    description: "Records skipped on purpose",
    labels: [...ofBinding, "topic"]
  }),
  /** Keys that are parked in the partitions of this process, by `state`: `waiting`, `draining` or `held`. Only of bindings with `orderingMode: "PER_KEY"`. */
  parkedKeys: define({
    name: "eventbus.parked.keys",
    kind: "gauge",
    description: "Keys that wait behind a record in a retry topic",
    labels: [...ofBinding, "state"]
  }),
  /** Records of the source that wait behind a parked key, as far as they are known. Only of bindings with `orderingMode: "PER_KEY"`. */
  parkedRecords: define({
    name: "eventbus.parked.records",
    kind: "gauge",
    description: "Records that wait behind a parked key",
    labels: ofBinding
  }),
  /** How long the oldest parked key has been parked; 0 without one. Only of bindings with `orderingMode: "PER_KEY"`. */
  parkedOldest: define({
    name: "eventbus.parked.oldest",
    kind: "gauge",
    unit: "s",
    description: "Age of the oldest parked key",
    labels: ofBinding
  }),
  /** Locks of keys that were published to retry topics, by `kind`: `retry`, `next`, `held` or `claim`. Only of bindings with `orderingMode: "PER_KEY"`. */
  keyLocks: define({
    name: "eventbus.key.locks",
    kind: "counter",
    description: "Locks of keys, and claims, that were published",
    labels: [...ofBinding, "kind"]
  }),
  /** Followers of parked keys that were read from the source again. Only of bindings with `orderingMode: "PER_KEY"`. */
  sourceReread: define({
    name: "eventbus.source.reread.records",
    kind: "counter",
    description: "Followers that were read from the source again",
    labels: ofBinding
  }),
  /** How long a unit took from its last part's assignment until it ran. Only of bindings with `orderingMode: "PER_KEY"`. */
  unitBegin: define({
    name: "eventbus.unit.begin",
    kind: "histogram",
    unit: "s",
    description: "Time until a unit of partitions runs",
    labels: ofBinding
  }),
  /** Records that retention, a deleted topic, or a new log under the same name took away before they were handled, where their number can be known. */
  recordsGone: define({
    name: "eventbus.records.gone",
    kind: "counter",
    description: "Records that were gone before they were read",
    labels: ofPartition
  }),
  /** How many attempts behind the first one a delivery took. `tier` is where it was delivered: `0` for the main topic, `2-4` for tiers that share a topic. */
  retryCount: define({
    name: "eventbus.retry.count",
    kind: "histogram",
    description: "Retries in place per delivery",
    labels: [...ofBinding, "tier"]
  }),
  /** How long one call of the handler took, whatever came of it. Measured in whole milliseconds; what waits in front of the handler does not count. */
  processingDuration: define({
    name: "eventbus.processing.duration",
    kind: "histogram",
    unit: "s",
    description: "Time in one call of the handler",
    labels: [...ofBinding, "listenerType"]
  }),
  /** Records that are handled as one batch; for listener type SINGLE, the records of one fetched chunk. */
  batchSize: define({
    name: "eventbus.batch.size",
    kind: "histogram",
    description: "Records per batch",
    labels: ofBinding
  }),
  /** The breaker's state: 0 while records pass (CLOSED, DISABLED), 1 while none does (OPEN, FORCED_OPEN), 2 for HALF_OPEN. Only of bindings that have one. */
  circuitState: define({
    name: "eventbus.circuit.state",
    kind: "gauge",
    description: "Circuit breaker: 0 closed, 1 open, 2 half-open",
    labels: ofBinding
  }),
  /** Changes of the breaker's state, by the state that it changed to. */
  circuitTransitions: define({
    name: "eventbus.circuit.transitions",
    kind: "counter",
    description: "Changes of the circuit breaker's state",
    labels: [...ofBinding, "to"]
  }),
  /** Records between the log end and the first one that is not finished, of every partition that this process owns, those of retry topics included. */
  consumerLag: define({
    name: "eventbus.consumer.lag",
    kind: "gauge",
    description: "Records that are not finished",
    labels: ofPartition
  }),
  /**
   * The group's records in the dead letter topic that are not dealt with, in all of its partitions: no replay has taken them, nobody has discarded them, and a custom
   * handler has not had them. Exact up to 10,000 offsets; beyond, an upper bound that counts control records of transactions and gaps. The cluster is asked every 10
   * seconds while this is read; until it has answered, what was stored from here counts. Every process reports the whole.
   */
  deadLetterDepth: define({
    name: "eventbus.dlt.depth",
    kind: "gauge",
    description: "Records in the dead letter topic that are not dealt with",
    labels: ofBinding
  }),
  /** Records that wait in a retry topic, of the partitions that this process owns: the sum of their lags. */
  retryTierDepth: define({
    name: "eventbus.retry.tier.depth",
    kind: "gauge",
    description: "Records waiting in a retry topic",
    labels: [...ofBinding, "tier"]
  }),
  /** The binding's state: CREATED 0, RUNNING 1, PAUSED 2, STOPPED 3, DESTROYED 4. */
  containerState: define({
    name: "eventbus.container.state",
    kind: "gauge",
    description: "State: 0 created, 1 running, 2 paused, 3 stopped, 4 destroyed",
    labels: ofBinding
  }),
  /** The binding's health, as `EventBusConnector.health` would show it alone: UP 0, DEGRADED 1, DOWN 2. */
  bindingHealth: define({
    name: "eventbus.binding.health",
    kind: "gauge",
    description: "Health: 0 up, 1 degraded, 2 down",
    labels: ofBinding
  }),
  /** Consumers of the binding that have a session with the cluster. */
  consumersRunning: define({
    name: "eventbus.consumers.running",
    kind: "gauge",
    description: "Consumers that have a session with the cluster",
    labels: ofBinding
  }),
  /** Handlers that were cut short, and batches that were ended early, because 70 % of `maxPollInterval` was used up. */
  pollIntervalSafety: define({
    name: "eventbus.poll.interval.safety.triggered",
    kind: "counter",
    description: "Times that 70 % of maxPollInterval were used up",
    labels: ofBinding
  }),
  /** How long ago the oldest record in flight was written; 0 when none is. */
  oldestRecordAge: define({
    name: "eventbus.oldest.record.age",
    kind: "gauge",
    unit: "s",
    description: "Age of the oldest record in flight",
    labels: ofPartition
  }),
  /** For how long the position has stood still although there are records behind it; from the first look at it on. */
  partitionStalled: define({
    name: "eventbus.partition.stalled",
    kind: "gauge",
    unit: "s",
    description: "Time for which a partition with records has not moved",
    labels: ofPartition
  }),
  /** Attempts to publish a copy that the broker refused. `topic` is the target. */
  publishFailed: define({
    name: "eventbus.publish.failed",
    kind: "counter",
    description: "Refused attempts to publish to a retry or dead letter topic",
    labels: [...ofBinding, "topic"]
  }),
  /** The lag, by the name that the alerts of the error handling strategy use. */
  kafkaConsumerLag: define({
    name: "kafka.consumer.lag",
    kind: "gauge",
    description: "The same as eventbus.consumer.lag, by consumer group",
    labels: ["cluster", "group", "topic", "partition"]
  }),
  /** The greatest lag of the partitions that this process owns. */
  kafkaLagMax: define({
    name: "kafka.consumer.records.lag.max",
    kind: "gauge",
    description: "The greatest lag of a partition",
    labels: ["cluster", "group", "binding"]
  }),
  /** Records whose delivery ended in whatever way, by consumer group. */
  kafkaRecordsConsumed: define({
    name: "kafka.consumer.records.consumed",
    kind: "counter",
    description: "Records whose delivery has ended",
    labels: ["cluster", "group", "binding"]
  }),
  /** OpenTelemetry: messages that were delivered to the application. */
  clientConsumedMessages: define({
    name: "messaging.client.consumed.messages",
    kind: "counter",
    description: "Records whose delivery has ended",
    labels: [
      ...ofConvention,
      "messaging.operation.name",
      "messaging.destination.name",
      "messaging.destination.partition.id"
    ]
  }),
  /** OpenTelemetry: what `eventbus.processing.duration` says. */
  processDuration: define({
    name: "messaging.process.duration",
    kind: "histogram",
    unit: "s",
    description: "Time in one call of the handler",
    labels: [...ofConvention, "messaging.operation.name", "messaging.destination.name"]
  }),
  /** OpenTelemetry: copies that are acknowledged in retry and dead letter topics. */
  clientSentMessages: define({
    name: "messaging.client.sent.messages",
    kind: "counter",
    description: "Copies acknowledged in retry and dead letter topics",
    labels: [...ofConvention, "messaging.operation.name", "messaging.destination.name"]
  })
} as const

/** Every metric, as a list. */
export const all: ReadonlyArray<Definition> = Object.values(definitions)

/** Whether bindings have metrics: read when one is registered. Default true; `false` is for those who measure what they cost. */
export const Enabled = Context.Reference<boolean>("@eventbus/core/Metrics", { defaultValue: () => true })
