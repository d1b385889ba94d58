/**
 * The gauges of the partitions that this process owns. Their values are computed when an exporter reads them. They are removed with the assignment.
 */
import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import type { ConsumerRecord, TopicPartition } from "../../ConsumerRecord.ts"
import * as Metrics from "../../Metrics.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"
import * as MetricSeries from "./metricSeries.ts"

/** The part of an assigned partition that the gauges read. */
export interface MeasuredPartition extends TopicPartition {
  readonly lag: () => bigint
  readonly waitingMillis: (nowMillis: number) => number
  readonly tracker: { readonly oldest: () => ConsumerRecord | undefined }
}

export interface PartitionGauges {
  readonly opened: (partition: MeasuredPartition) => void
  readonly closed: (partition: MeasuredPartition) => void
  /** The greatest lag of all open partitions. */
  readonly maxLag: () => number
  /** The lag of all open partitions of a retry topic together. */
  readonly depthOf: (topic: string) => number
  readonly end: () => void
}

export const make = (
  definition: BindingDefinition<unknown>,
  context: Context.Context<never>,
  clock: Clock.Clock
): PartitionGauges => {
  const open = new Map<MeasuredPartition, MetricSeries.Series>()
  return {
    opened: (measured) => {
      const series = MetricSeries.make(context)
      open.set(measured, series)
      const { cluster, name: binding } = definition
      const group = Sources.groupOf(definition, measured.topic)
      const at = { topic: measured.topic, partition: String(measured.partition) }
      const lag = () => lagOf(measured)
      series.gauge(Metrics.definitions.consumerLag, { cluster, binding, ...at }, lag)
      series.gauge(Metrics.definitions.kafkaConsumerLag, { cluster, group, ...at }, lag)
      series.gauge(Metrics.definitions.oldestRecordAge, { cluster, binding, ...at }, oldestAge(measured, clock))
      const stalled = () => measured.waitingMillis(clock.currentTimeMillisUnsafe()) / 1_000
      series.gauge(Metrics.definitions.partitionStalled, { cluster, binding, ...at }, stalled)
    },
    closed: (measured) => {
      open.get(measured)?.end()
      open.delete(measured)
    },
    maxLag: () => Math.max(0, ...Array.from(open.keys(), lagOf)),
    depthOf: (topic) => {
      let depth = 0
      for (const measured of open.keys()) if (measured.topic === topic) depth += lagOf(measured)
      return depth
    },
    end: () => {
      for (const series of open.values()) series.end()
      open.clear()
    }
  }
}

/** Counts from the position of finished records, which may be ahead of the committed offset by one commit interval. */
const lagOf = (measured: MeasuredPartition): number => Number(measured.lag())

const oldestAge =
  ({ tracker }: MeasuredPartition, clock: Clock.Clock) =>
  (): number => {
    const oldest = tracker.oldest()
    return oldest === undefined ? 0 : Math.max(0, clock.currentTimeMillisUnsafe() - oldest.timestamp) / 1_000
  }
