/**
 * What a `TestBus` asks of a cluster past the connector: it writes records, and looks at logs and committed offsets.
 */
import type { BrokerError, ConsumerRecord } from "@eventbus/core"
import type { Effect } from "effect"

export interface TestCluster {
  /** Makes a topic that is not there; one that is stays as it is. */
  readonly createTopic: (topic: string, partitions: number) => Effect.Effect<void>
  readonly publish: (
    record: ConsumerRecord.ProducerRecord
  ) => Effect.Effect<ConsumerRecord.RecordMetadata, BrokerError.BrokerError>
  /** Every record of a topic that a `read_committed` reader gets, partition by partition; none when there is no such topic. */
  readonly records: (topic: string) => Effect.Effect<ReadonlyArray<ConsumerRecord.ConsumerRecord>>
  /** By partition. */
  readonly committed: (groupId: string, topic: string) => Effect.Effect<ReadonlyMap<number, bigint>>
  /** By partition, the log's end; empty when there is no such topic. */
  readonly ends: (topic: string) => Effect.Effect<ReadonlyMap<number, bigint>>
}
