/**
 * Counts what happens in one binding and registers the metric series that show it (`Metrics.ts` names them). The hot path only adds to plain numbers. All other
 * work happens when an exporter reads a series.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TopicPartition } from "../../ConsumerRecord.ts"
import type { Failure } from "../../Failure.ts"
import * as Metrics from "../../Metrics.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as DeadLetterDepth from "./deadLetterDepth.ts"
import * as Histogram from "./histogram.ts"
import * as MetricSeries from "./metricSeries.ts"
import type * as PartitionGauges from "./partitionGauges.ts"
import * as RunMetrics from "./runMetrics.ts"
import { stateNumber } from "./stateNumbers.ts"

export interface BindingMetrics {
  /** False when metrics are off. Callers then measure no times. */
  readonly enabled: boolean
  readonly countersOf: (at: TopicPartition) => RunMetrics.PartitionCounters
  /** The handler handled a record at the first attempt. */
  readonly handledAtOnce: (counters: RunMetrics.PartitionCounters) => void
  /** A delivery ended, for now or for good. */
  readonly settled: (
    at: TopicPartition & { readonly counters: RunMetrics.PartitionCounters },
    outcome: RunMetrics.Outcome
  ) => void
  /** A call of the handler returned after `millis`. */
  readonly handlerReturned: (millis: number) => void
  /** A delivery ended, and its last attempt had failed. */
  readonly deliveryFailed: (topic: string, failure: Failure) => void
  readonly batch: (records: number) => void
  readonly budgetReached: () => void
  readonly publishFailed: (topic: string) => void
  readonly recordsGone: (at: TopicPartition, records: number) => void
  readonly deadLetterDepth: DeadLetterDepth.DeadLetterDepth
  /** A partition was assigned to this process, or its assignment ended. */
  readonly partitionOpened: (partition: PartitionGauges.MeasuredPartition) => void
  readonly partitionClosed: (partition: PartitionGauges.MeasuredPartition) => void
  /** The binding starts: all counters begin at 0. */
  readonly begin: () => void
  /** The binding has stopped: only the series of its state stays. */
  readonly end: () => void
}

/** Makes the metrics of a binding. Closing the scope removes all series. */
export const make = Effect.fnUntraced(function* (
  definition: BindingDefinition<unknown>,
  sources: RunMetrics.Sources
): Effect.fn.Return<BindingMetrics, never, Scope.Scope> {
  const context = yield* Effect.context()
  const clock = yield* Clock.Clock
  const labels = { cluster: definition.cluster, binding: definition.name }
  const deadLetterDepth = DeadLetterDepth.make(clock, (read) => {
    const series = MetricSeries.make(context)
    series.gauge(Metrics.definitions.deadLetterDepth, labels, read)
    return series.end
  })
  if (!(yield* Metrics.Enabled)) return disabled(deadLetterDepth)
  const ofState = MetricSeries.make(context)
  ofState.gauge(Metrics.definitions.containerState, labels, () => {
    deadLetterDepth.metricsRead()
    return stateNumber(sources.state())
  })
  let run = RunMetrics.make(definition, context, clock)
  sources.breaker?.onChange(({ to }) => run.circuitChanged(1, to))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      run.end()
      deadLetterDepth.end()
      ofState.end()
    })
  )

  return {
    enabled: true,
    countersOf: (at) => run.countersOf(at),
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
      // Negative when a clock was set back, or when the record never reached its handler.
      if (millis >= 0) run.duration.observe(millis)
    },
    deliveryFailed: (topic, { className }) => run.deliveryFailed(topic, className),
    batch: (records) => run.batches.observe(records),
    budgetReached: () => run.budgetReached(1),
    publishFailed: (topic) => run.publishFailed(1, topic),
    recordsGone: ({ topic, partition }, records) => run.recordsGone(records, topic, String(partition)),
    partitionOpened: (partition) => run.gauges.opened(partition),
    partitionClosed: (partition) => run.gauges.closed(partition),
    begin: () => {
      run.end()
      run = RunMetrics.make(definition, context, clock)
      run.registerGauges(sources)
      deadLetterDepth.begin()
    },
    end: () => {
      run.end()
      deadLetterDepth.end()
    }
  }
})

const disabled = (deadLetterDepth: DeadLetterDepth.DeadLetterDepth): BindingMetrics => {
  const counters: RunMetrics.PartitionCounters = { processed: 0, notHandled: 0, retries: Histogram.make([]) }
  return {
    enabled: false,
    countersOf: () => counters,
    deadLetterDepth,
    handledAtOnce: ignored,
    settled: ignored,
    handlerReturned: ignored,
    deliveryFailed: ignored,
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
