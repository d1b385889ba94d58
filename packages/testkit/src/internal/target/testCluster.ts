/**
 * The operations of a `TestBus` on a cluster beside the connector: it writes records and reads logs and committed offsets.
 */
import type { BrokerError, ConsumerRecord } from "@eventbus/core"
import type * as Effect from "effect/Effect"

export interface TestCluster {
  /** Creates a missing topic; an existing topic is not changed. */
  readonly createTopic: (topic: string, partitions: number) => Effect.Effect<void>
  readonly publish: (
    record: ConsumerRecord.ProducerRecord
  ) => Effect.Effect<ConsumerRecord.RecordMetadata, BrokerError.BrokerError>
  /** Every record of a topic that a `read_committed` reader gets, partition by partition; empty for a missing topic. */
  readonly records: (topic: string) => Effect.Effect<ReadonlyArray<ConsumerRecord.ConsumerRecord>>
  /** Committed offsets by partition. */
  readonly committed: (groupId: string, topic: string) => Effect.Effect<ReadonlyMap<number, bigint>>
  /** Log ends by partition; empty for a missing topic. */
  readonly ends: (topic: string) => Effect.Effect<ReadonlyMap<number, bigint>>
}
