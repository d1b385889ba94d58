/**
 * The counters and metric series of a binding from one start to its stop. The next start begins at 0.
 */

import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import { partitionKey, type TopicPartition } from "../../ConsumerRecord.ts"
import type { ContainerState } from "../../EventBusError.ts"
import type { DeadLetterReason } from "../../Failure.ts"
import type { Status } from "../../Health.ts"
import * as Metrics from "../../Metrics.ts"
import type { DeliveryResult } from "../record/deliveryResult.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as TopicSources from "../settings/sources.ts"
import * as Histogram from "./histogram.ts"
import * as MetricSeries from "./metricSeries.ts"
import * as OrderMetrics from "./orderMetrics.ts"
import * as PartitionGauges from "./partitionGauges.ts"
import { circuitNumber, healthNumber, mostExceptions } from "./stateNumbers.ts"

/** The counters of one partition, over all its assignments in one run of the binding. */
export interface PartitionCounters {
  processed: number
  /** Deliveries that ended in another way than `Handled`. */
  notHandled: number
  readonly retries: Histogram.Histogram
}

/** The values that the gauges of a binding read. */
export interface Sources {
  readonly state: () => ContainerState
  readonly breaker: CircuitBreaker.CircuitBreaker | undefined
  readonly consumersRunning: () => number
  readonly health: () => Status
  /** Undefined for a binding without order per key. */
  readonly order?: OrderMetrics.Sources | undefined
}

export type Outcome = Pick<DeliveryResult, "settlement" | "attempts" | "target">

const deadLetterReasons: ReadonlyArray<DeadLetterReason> = [
  "NON_RETRYABLE",
  "RETRIES_EXHAUSTED",
  "MANUAL",
  "KEY_BLOCKED"
]
const durationMillis = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000]
const retries = [0, 1, 2, 3, 5, 10, 20, 50]
const batchSizes = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000]

/** The labels of every series of the binding. */
interface BindingLabels extends MetricSeries.Labels {
  readonly cluster: string
  readonly binding: string
}

/** Makes the counters of one run and registers its series in the metric registry of `context`. */
export const make = (definition: BindingDefinition<unknown>, context: Context.Context<never>, clock: Clock.Clock) => {
  const labels: BindingLabels = { cluster: definition.cluster, binding: definition.name }
  const series = MetricSeries.make(context)
  const gauges = PartitionGauges.make(definition, context, clock)
  const counters = makeCounters(definition, series, labels)
  const partitions = partitionCounters(definition, series, labels, counters.recordsGone)
  const duration = Histogram.make(durationMillis, 1_000)
  const batches = Histogram.make(batchSizes)
  const exceptions = new Set<string>()

  return {
    gauges,
    duration,
    batches,
    countersOf: partitions.countersOf,
    settled: (
      at: TopicPartition & { readonly counters: PartitionCounters },
      { settlement, attempts, target }: Outcome
    ) => {
      if (settlement === "Halted" || settlement === "HeldByBreaker" || settlement === "Abandoned") return
      at.counters.retries.observe(Math.max(0, attempts - 1))
      if (settlement === "Handled") {
        at.counters.processed++
        return
      }
      at.counters.notHandled++
      const { topic } = at
      if (settlement === "Skipped") return counters.skipped(1, topic)
      if (target === undefined) return
      counters.sent(1, target.topic)
      if (settlement === "Routed") counters.routed(1, topic, String(target.tier))
      else counters.deadLettered(1, topic, target.reason ?? "NON_RETRYABLE")
    },
    deliveryFailed: (topic: string, className: string) => {
      const isKnown = exceptions.has(className)
      if (!isKnown && exceptions.size < mostExceptions) exceptions.add(className)
      counters.failed(1, topic, exceptions.has(className) ? className : "other")
    },
    budgetReached: counters.budgetReached,
    publishFailed: counters.publishFailed,
    recordsGone: counters.recordsGone,
    circuitChanged: counters.circuitChanged,
    registerGauges: (sources: Sources) => {
      registerGauges({ definition, series, labels, gauges }, sources, clock)
      registerHistograms({ definition, series, labels }, duration, batches)
      startAtZero(definition, counters)
      const groupLabels = { cluster: labels.cluster, group: definition.groupId, binding: labels.binding }
      series.counter(Metrics.definitions.kafkaRecordsConsumed, groupLabels, partitions.consumed)
      series.gauge(Metrics.definitions.kafkaLagMax, groupLabels, gauges.maxLag)
    },
    end: () => {
      gauges.end()
      series.end()
    }
  }
}

/** The labels that OpenTelemetry's messaging conventions ask for. */
const conventionLabels = ({ groupId, cluster, name }: BindingDefinition<unknown>): MetricSeries.Labels => ({
  "messaging.system": "kafka",
  "messaging.consumer.group.name": groupId,
  "eventbus.cluster": cluster,
  "eventbus.binding": name
})

type Counters = ReturnType<typeof makeCounters>

const makeCounters = (definition: BindingDefinition<unknown>, series: MetricSeries.Series, labels: BindingLabels) => {
  const ofTopic = (topic: string) => ({ ...labels, topic })
  const convention = conventionLabels(definition)
  return {
    failed: series.counters(Metrics.definitions.recordsFailed, (topic, exception) => ({ ...labels, topic, exception })),
    deadLettered: series.counters(Metrics.definitions.recordsDeadLettered, (topic, reason) => ({
      ...labels,
      topic,
      reason
    })),
    routed: series.counters(Metrics.definitions.recordsRouted, (topic, tier) => ({ ...labels, topic, tier })),
    skipped: series.counters(Metrics.definitions.recordsSkipped, ofTopic),
    budgetReached: series.counters(Metrics.definitions.pollIntervalSafety, () => labels),
    publishFailed: series.counters(Metrics.definitions.publishFailed, ofTopic),
    recordsGone: series.counters(Metrics.definitions.recordsGone, (topic, partition) => ({
      ...labels,
      topic,
      partition
    })),
    circuitChanged: series.counters(Metrics.definitions.circuitTransitions, (to) => ({ ...labels, to })),
    sent: series.counters(Metrics.definitions.clientSentMessages, (target) => ({
      ...convention,
      "messaging.operation.name": "send",
      "messaging.destination.name": target
    }))
  }
}

const partitionCounters = (
  definition: BindingDefinition<unknown>,
  series: MetricSeries.Series,
  labels: BindingLabels,
  recordsGone: Counters["recordsGone"]
) => {
  const byPartition = new Map<string, PartitionCounters>()
  const retriesByTier = new Map<string, Histogram.Histogram>()
  const convention = conventionLabels(definition)

  const retriesIn = (topic: string): Histogram.Histogram => {
    const tier = tierLabel(definition, topic)
    const known = retriesByTier.get(tier)
    if (known !== undefined) return known
    const histogram = Histogram.make(retries)
    retriesByTier.set(tier, histogram)
    series.histogram(Metrics.definitions.retryCount, { ...labels, tier }, histogram.state)
    return histogram
  }

  return {
    countersOf: (at: TopicPartition): PartitionCounters => {
      const key = partitionKey(at.topic, at.partition)
      const known = byPartition.get(key)
      if (known !== undefined) return known
      const counters: PartitionCounters = { processed: 0, notHandled: 0, retries: retriesIn(at.topic) }
      const partition = String(at.partition)
      byPartition.set(key, counters)
      recordsGone(0, at.topic, partition)
      series.counter(
        Metrics.definitions.recordsProcessed,
        { ...labels, topic: at.topic, partition },
        () => counters.processed
      )
      series.counter(
        Metrics.definitions.clientConsumedMessages,
        {
          ...convention,
          "messaging.operation.name": "process",
          "messaging.destination.name": at.topic,
          "messaging.destination.partition.id": partition
        },
        () => counters.processed + counters.notHandled
      )
      return counters
    },
    /** Deliveries of all partitions together. */
    consumed: (): number => {
      let sum = 0
      for (const { processed, notHandled } of byPartition.values()) sum += processed + notHandled
      return sum
    }
  }
}

/** The arguments of every registration. */
interface Registration {
  readonly definition: BindingDefinition<unknown>
  readonly series: MetricSeries.Series
  readonly labels: BindingLabels
}

const registerGauges = (
  { definition, series, labels, gauges }: Registration & { readonly gauges: PartitionGauges.PartitionGauges },
  { breaker, consumersRunning, health, order }: Sources,
  clock: Clock.Clock
): void => {
  if (order !== undefined) OrderMetrics.register(series, labels, order, clock)
  for (const { topic, first } of definition.tiers.topics) {
    const tier = tierLabel(definition, topic)
    const topics = TopicSources.of(definition).map(({ tiers }) => tiers.topicOf(first).topic)
    series.gauge(Metrics.definitions.retryTierDepth, { ...labels, tier }, () =>
      topics.reduce((sum, each) => sum + gauges.depthOf(each), 0)
    )
  }
  series.gauge(Metrics.definitions.consumersRunning, labels, consumersRunning)
  series.gauge(Metrics.definitions.bindingHealth, labels, () => healthNumber(health()))
  if (breaker === undefined) return
  series.gauge(Metrics.definitions.circuitState, labels, () => circuitNumber(breaker.stateUnsafe()))
}

const registerHistograms = (
  { definition, series, labels }: Registration,
  duration: Histogram.Histogram,
  batches: Histogram.Histogram
): void => {
  const { listenerType } = definition
  series.histogram(Metrics.definitions.processingDuration, { ...labels, listenerType }, duration.state)
  series.histogram(
    Metrics.definitions.processDuration,
    {
      ...conventionLabels(definition),
      "messaging.operation.name": "process",
      "messaging.destination.name": TopicSources.topicsOf(definition).join(",")
    },
    duration.state
  )
  series.histogram(Metrics.definitions.batchSize, labels, batches.state)
}

/** Registers counters at 0: a rate misses the first increment of a series that starts at 1. */
const startAtZero = (definition: BindingDefinition<unknown>, counters: Counters): void => {
  for (const { topic, tiers, deadLetterTopic } of TopicSources.of(definition)) {
    for (const reason of deadLetterReasons) counters.deadLettered(0, topic, reason)
    for (const target of tiers.topics) counters.publishFailed(0, target.topic)
    counters.publishFailed(0, deadLetterTopic)
  }
  counters.budgetReached(0)
}

/** `0` for the main topic, `2` for the topic of tier 2, `2-4` for a topic that tiers share. */
const tierLabel = (definition: BindingDefinition<unknown>, topic: string): string => {
  const tier = TopicSources.tierOf(definition, topic)
  if (tier === undefined) return "0"
  return tier.first === tier.last ? String(tier.first) : `${tier.first}-${tier.last}`
}
