/**
 * What is counted of one binding, and the series that show it (`Metrics.ts` names them). The hot path adds to plain numbers; everything else happens when a
 * series is read.
 */
import { Clock, type Context, Effect, type Scope } from "effect"
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { TopicPartition } from "../../ConsumerRecord.ts"
import { partitionKey } from "../../ConsumerRecord.ts"
import type { ContainerState } from "../../EventBusError.ts"
import * as Metrics from "../../Metrics.ts"
import type { Failure } from "../failure/failure.ts"
import type { DeadLetterReason } from "../record/deadLetterHeaders.ts"
import type { DeliveryResult } from "../record/deliveryResult.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as DeadLetterDepth from "./deadLetterDepth.ts"
import * as Histogram from "./histogram.ts"
import * as MetricSeries from "./metricSeries.ts"
import * as PartitionGauges from "./partitionGauges.ts"

/** What is counted of one partition, over all assignments of a run. */
export interface PartitionCounters {
  processed: number
  /** Deliveries that ended otherwise. */
  notHandled: number
  readonly retries: Histogram.Histogram
}

/** What the gauges of a binding read. */
export interface Sources {
  readonly state: () => ContainerState
  readonly breaker: CircuitBreaker.CircuitBreaker | undefined
  readonly consumersRunning: () => number
}

export interface BindingMetrics {
  /** Without it, nobody need take the time of anything. */
  readonly enabled: boolean
  readonly countersOf: (at: TopicPartition) => PartitionCounters
  /** A record was handled at the first attempt. */
  readonly handledAtOnce: (counters: PartitionCounters) => void
  /** A delivery ended, for now or for good. */
  readonly settled: (at: TopicPartition & { readonly counters: PartitionCounters }, outcome: Outcome) => void
  /** A call of the handler has returned. */
  readonly handlerReturned: (millis: number) => void
  readonly attemptFailed: (topic: string, failure: Failure) => void
  readonly batch: (records: number) => void
  readonly budgetReached: () => void
  readonly publishFailed: (topic: string) => void
  readonly recordsGone: (at: TopicPartition, records: number) => void
  readonly deadLetterDepth: DeadLetterDepth.DeadLetterDepth
  /** A partition is ours, or no longer. */
  readonly partitionOpened: (partition: PartitionGauges.MeasuredPartition) => void
  readonly partitionClosed: (partition: PartitionGauges.MeasuredPartition) => void
  /** The binding starts: everything counts from 0. */
  readonly begin: () => void
  /** The binding has stopped: only its state is left. */
  readonly end: () => void
}

type Outcome = Pick<DeliveryResult, "settlement" | "attempts"> & {
  readonly target: DeliveryResult["target"] | undefined
}

const deadLetterReasons: ReadonlyArray<DeadLetterReason> = ["NON_RETRYABLE", "RETRIES_EXHAUSTED"]
const durationMillis = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000]
const retries = [0, 1, 2, 3, 5, 10, 20, 50]
const batchSizes = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000]

/** Nothing is left of them when the scope closes. */
export const make = Effect.fnUntraced(function* (
  definition: BindingDefinition<unknown>,
  sources: Sources
): Effect.fn.Return<BindingMetrics, never, Scope.Scope> {
  const context = yield* Effect.context()
  const clock = yield* Clock.Clock
  const of = { cluster: definition.cluster, binding: definition.name }
  const deadLetterDepth = DeadLetterDepth.make(clock)
  if (!(yield* Metrics.Enabled)) return off(deadLetterDepth)
  const ofState = MetricSeries.make(context)
  ofState.gauge(Metrics.containerState, of, () => Metrics.stateNumber(sources.state()))
  let run = makeRun(definition, context, clock, of)
  sources.breaker?.onChange(({ to }) => run.circuitChanged(1, to))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      run.end()
      ofState.end()
    })
  )

  return {
    enabled: true,
    countersOf: (at) => run.counters(at),
    handledAtOnce: (counters) => {
      counters.processed++
      counters.retries.observe(0)
    },
    settled: (at, outcome) => {
      if (outcome.settlement === "DeadLettered") deadLetterDepth.stored()
      run.settled(at, outcome)
    },
    deadLetterDepth,
    handlerReturned: (millis) => {
      // Not so when a clock was set back, or when the record never left the queue in front of its handler.
      if (millis >= 0) run.duration.observe(millis)
    },
    attemptFailed: (topic, { className }) => run.attemptFailed(topic, className),
    batch: (records) => run.batches.observe(records),
    budgetReached: () => run.budgetReached(1),
    publishFailed: (topic) => run.publishFailed(1, topic),
    recordsGone: ({ topic, partition }, records) => run.gone(records, topic, String(partition)),
    partitionOpened: (partition) => run.gauges.opened(partition),
    partitionClosed: (partition) => run.gauges.closed(partition),
    begin: () => {
      run.end()
      run = makeRun(definition, context, clock, of)
      run.begin(sources, deadLetterDepth)
    },
    end: () => run.end()
  }
})

const off = (deadLetterDepth: DeadLetterDepth.DeadLetterDepth): BindingMetrics => {
  const counters: PartitionCounters = { processed: 0, notHandled: 0, retries: Histogram.make([]) }
  return {
    enabled: false,
    countersOf: () => counters,
    deadLetterDepth,
    handledAtOnce: ignored,
    settled: ignored,
    handlerReturned: ignored,
    attemptFailed: ignored,
    batch: ignored,
    budgetReached: ignored,
    publishFailed: ignored,
    recordsGone: ignored,
    partitionOpened: ignored,
    partitionClosed: ignored,
    begin: ignored,
    end: ignored
  }
}

const ignored = () => {}

/** The labels that every series of the binding has. */
interface OfBinding extends Readonly<Record<string, string>> {
  readonly cluster: string
  readonly binding: string
}

/** What counts from one start of the binding to its stop. */
const makeRun = (
  definition: BindingDefinition<unknown>,
  context: Context.Context<never>,
  clock: Clock.Clock,
  of: OfBinding
) => {
  const series = MetricSeries.make(context)
  const gauges = PartitionGauges.make(definition, context, clock)
  const tallies = new Map<string, PartitionCounters>()
  const byTier = new Map<string, Histogram.Histogram>()
  const exceptions = new Set<string>()
  const duration = Histogram.make(durationMillis, 1_000)
  const batches = Histogram.make(batchSizes)
  const convention = {
    "messaging.system": "kafka",
    "messaging.consumer.group.name": definition.groupId,
    "eventbus.cluster": of.cluster,
    "eventbus.binding": of.binding
  }
  const ofTopic = (topic: string) => ({ ...of, topic })
  const failed = series.counters(Metrics.recordsFailed, (topic, exception) => ({ ...of, topic, exception }))
  const deadLettered = series.counters(Metrics.recordsDeadLettered, (topic, reason) => ({ ...of, topic, reason }))
  const routed = series.counters(Metrics.recordsRouted, (topic, tier) => ({ ...of, topic, tier }))
  const skipped = series.counters(Metrics.recordsSkipped, ofTopic)
  const budgetReached = series.counters(Metrics.pollIntervalSafety, () => of)
  const publishFailed = series.counters(Metrics.publishFailed, ofTopic)
  const gone = series.counters(Metrics.recordsGone, (topic, partition) => ({ ...of, topic, partition }))
  const sent = series.counters(Metrics.clientSentMessages, (target) => ({
    ...convention,
    "messaging.operation.name": "send",
    "messaging.destination.name": target
  }))

  const retriesIn = (topic: string): Histogram.Histogram => {
    const tier = tierLabel(definition, topic)
    const known = byTier.get(tier)
    if (known !== undefined) return known
    const histogram = Histogram.make(retries)
    byTier.set(tier, histogram)
    series.histogram(Metrics.retryCount, { ...of, tier }, histogram.state)
    return histogram
  }

  const counters = (at: TopicPartition): PartitionCounters => {
    const key = partitionKey(at.topic, at.partition)
    const known = tallies.get(key)
    if (known !== undefined) return known
    const counted: PartitionCounters = { processed: 0, notHandled: 0, retries: retriesIn(at.topic) }
    const partition = String(at.partition)
    tallies.set(key, counted)
    gone(0, at.topic, partition)
    series.counter(Metrics.recordsProcessed, { ...of, topic: at.topic, partition }, () => counted.processed)
    series.counter(
      Metrics.clientConsumedMessages,
      {
        ...convention,
        "messaging.operation.name": "process",
        "messaging.destination.name": at.topic,
        "messaging.destination.partition.id": partition
      },
      () => counted.processed + counted.notHandled
    )
    return counted
  }

  const consumed = () => {
    let sum = 0
    for (const { processed, notHandled: otherwise } of tallies.values()) sum += processed + otherwise
    return sum
  }

  return {
    gauges,
    duration,
    batches,
    counters,
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
      if (settlement === "Skipped") return skipped(1, topic)
      if (target === undefined) return
      sent(1, target.topic)
      if (settlement === "Routed") routed(1, topic, String(target.tier))
      else deadLettered(1, topic, target.reason ?? "NON_RETRYABLE")
    },
    attemptFailed: (topic: string, className: string) => {
      const isKnown = exceptions.has(className)
      if (!isKnown && exceptions.size < Metrics.mostExceptions) exceptions.add(className)
      failed(1, topic, exceptions.has(className) ? className : "other")
    },
    budgetReached,
    publishFailed,
    gone,
    circuitChanged: series.counters(Metrics.circuitTransitions, (to) => ({ ...of, to })),
    begin: ({ breaker, consumersRunning }: Sources, { read }: DeadLetterDepth.DeadLetterDepth) => {
      series.gauge(Metrics.deadLetterDepth, of, read)
      for (const { topic } of definition.tiers.topics) {
        const tier = tierLabel(definition, topic)
        series.gauge(Metrics.retryTierDepth, { ...of, tier }, () => gauges.depthOf(topic))
      }
      series.gauge(Metrics.consumersRunning, of, consumersRunning)
      if (breaker !== undefined) {
        series.gauge(Metrics.circuitState, of, () => Metrics.circuitNumber(breaker.stateUnsafe()))
      }
      const { listenerType, groupId, topic } = definition
      series.histogram(Metrics.processingDuration, { ...of, listenerType }, duration.state)
      series.histogram(
        Metrics.processDuration,
        { ...convention, "messaging.operation.name": "process", "messaging.destination.name": topic },
        duration.state
      )
      series.histogram(Metrics.batchSize, of, batches.state)
      // Counters whose first increment must not be missed: a rate needs a value before it.
      for (const reason of deadLetterReasons) deadLettered(0, topic, reason)
      for (const target of definition.tiers.topics) publishFailed(0, target.topic)
      publishFailed(0, definition.deadLetterTopic)
      budgetReached(0)
      const ofGroup = { cluster: of.cluster, group: groupId, binding: of.binding }
      series.counter(Metrics.kafkaRecordsConsumed, ofGroup, consumed)
      series.gauge(Metrics.kafkaLagMax, ofGroup, gauges.mostLag)
    },
    end: () => {
      gauges.end()
      series.end()
    }
  }
}

/** `0` for the main topic, the number of the tier for its own topic, and the range for one that tiers share. */
const tierLabel = ({ tiers }: BindingDefinition<unknown>, topic: string): string => {
  const tier = tiers.ofTopic(topic)
  if (tier === undefined) return "0"
  return tier.first === tier.last ? String(tier.first) : `${tier.first}-${tier.last}`
}
