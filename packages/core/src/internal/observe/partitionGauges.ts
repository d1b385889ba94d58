/**
 * The gauges of the partitions that are owned now. What they show is worked out when they are read; they go with the partition.
 */
import type { Clock, Context } from "effect"
import type { ConsumerRecord, TopicPartition } from "../../ConsumerRecord.ts"
import * as Metrics from "../../Metrics.ts"
import { type BindingDefinition, groupOf } from "../settings/bindingDefinition.ts"
import * as MetricSeries from "./metricSeries.ts"

/** What they need of an assigned partition. */
export interface MeasuredPartition extends TopicPartition {
  readonly lag: () => bigint
  readonly waitingMillis: (nowMillis: number) => number
  readonly tracker: { readonly oldest: () => ConsumerRecord | undefined }
}

export interface PartitionGauges {
  readonly opened: (partition: MeasuredPartition) => void
  readonly closed: (partition: MeasuredPartition) => void
  /** The greatest lag of all that are open. */
  readonly mostLag: () => number
  /** Of a retry topic. */
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
    opened: (watched) => {
      const series = MetricSeries.make(context)
      open.set(watched, series)
      const { cluster, name: binding } = definition
      const group = groupOf(definition, watched.topic)
      const at = { topic: watched.topic, partition: String(watched.partition) }
      const lag = () => lagOf(watched)
      series.gauge(Metrics.consumerLag, { cluster, binding, ...at }, lag)
      series.gauge(Metrics.kafkaConsumerLag, { cluster, group, ...at }, lag)
      series.gauge(Metrics.oldestRecordAge, { cluster, binding, ...at }, oldestAge(watched, clock))
      const stalled = () => watched.waitingMillis(clock.currentTimeMillisUnsafe()) / 1_000
      series.gauge(Metrics.partitionStalled, { cluster, binding, ...at }, stalled)
    },
    closed: (watched) => {
      open.get(watched)?.end()
      open.delete(watched)
    },
    mostLag: () => Math.max(0, ...Array.from(open.keys(), lagOf)),
    depthOf: (topic) => {
      let depth = 0
      for (const watched of open.keys()) if (watched.topic === topic) depth += lagOf(watched)
      return depth
    },
    end: () => {
      for (const series of open.values()) series.end()
      open.clear()
    }
  }
}

/** From the position of what is finished, which may be ahead of the committed offset by one commit interval. */
const lagOf = (watched: MeasuredPartition): number => Number(watched.lag())

const oldestAge =
  ({ tracker }: MeasuredPartition, clock: Clock.Clock) =>
  (): number => {
    const oldest = tracker.oldest()
    return oldest === undefined ? 0 : Math.max(0, clock.currentTimeMillisUnsafe() - oldest.timestamp) / 1_000
  }
