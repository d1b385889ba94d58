/**
 * Reading without a group, as a part of the Broker port (`Broker.ts`), and the settings and answers of fetches, which readers and consumers share.
 */
import type * as Effect from "effect/Effect"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, RecordPosition, TopicPartition } from "../../ConsumerRecord.ts"
import type { UnreadableBatch } from "./unreadableBatch.ts"

/** How to fetch. */
export interface FetchOptions {
  /** Shown in broker logs and quotas. Default: the adapter's client id. */
  readonly clientId?: string
  /** `max.partition.fetch.bytes`: bounds one chunk, and so what arrives after a pause. Default 1 MiB. */
  readonly maxPartitionFetchBytes?: number
  /**
   * The largest record of a compressed batch that is decompressed, in bytes, 1 or more. A batch with a larger one is `Unreadable`. The headers that the connector writes
   * into copies (`Adapter.isCopyHeader`) do not count, up to `Adapter.maxCopyHeaderBytes`. Batches themselves may be of any size: they are decompressed in parts.
   * Default 16 MiB.
   */
  readonly maxRecordBytes?: number
  /** `isolation.level`. Default `read_committed`: records of aborted or open transactions are not delivered. */
  readonly isolationLevel?: "read_committed" | "read_uncommitted"
}

/** Records of one partition, in offset order, as fetched. */
export interface FetchedRecords extends TopicPartition {
  /** May be empty: control records and compacted or aborted ranges move only `nextOffset`. */
  readonly records: ReadonlyArray<ConsumerRecord>
  /** The position behind these records, control records included. */
  readonly nextOffset: bigint
  /** One past the last offset that a client of this isolation can read, as known when the records were fetched. */
  readonly highWatermark: bigint
  /** Approximate size of keys, values and headers in bytes; 0 without records, since bytes are given back with the records. */
  readonly bytes: number
}

/** A position that the log does not have: retention or `deleteRecords` overtook it, or the log ends before it. */
export interface MissingPosition extends TopicPartition {
  /** The position that does not exist. */
  readonly position: bigint
  /** First offset that is still there. */
  readonly logStart: bigint
  /** One past the last offset. */
  readonly logEnd: bigint
}

/**
 * The answer to a read.
 *
 * - `Fetched`: the records from the position on. None, and `nextOffset` at the position, when nothing can be read there yet.
 * - `Unreadable`: the batch at the position cannot be read. Records behind it can be, from `lastOffset` + 1 on.
 * - `OutOfRange`: the position does not exist.
 */
export type ReadResult = {
  /** The id of the topic that was read: a topic that is made again has another one. Undefined when the cluster gives none (Kafka before 2.8). */
  readonly topicId: string | undefined
} & (
  | {
      readonly _tag: "Fetched"
      /** The records. */
      readonly chunk: FetchedRecords
    }
  | ({ readonly _tag: "Unreadable" } & UnreadableBatch)
  | ({ readonly _tag: "OutOfRange" } & MissingPosition)
)

/**
 * Reads partitions by position: without a group, without waiting for members, and with no other right than to read the topic. It commits nothing and remembers no
 * position. Closing its scope ends what is being read with `BrokerUnavailable`.
 */
export interface Reader {
  /**
   * Reads one chunk from a position on, with one fetch from the partition's leader, which is looked up again when it has moved. Reading on from `nextOffset` of the last
   * chunk goes on with what was fetched for it. Answers at the end of the log, too, after half a second at most. Fails with `UnknownTopic` when the topic or the partition
   * does not exist, and with `RequestTimedOut` when the leader does not answer.
   */
  readonly read: (position: RecordPosition) => Effect.Effect<ReadResult, BrokerError>
}
