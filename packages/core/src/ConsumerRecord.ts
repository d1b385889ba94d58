/**
 * A record as Kafka stores it: bytes, exact 64-bit offset, headers in order.
 *
 * Adapters may implement the interface with lazy getters; a record is immutable and safe to keep after its handler ended.
 */

/** A codec of record batches. Kafka: `compression.type`. */
export type Compression = "none" | "gzip" | "snappy" | "lz4" | "zstd"

/** One header of a record. A key may repeat, order matters, and a value may be null (Kafka's wire format allows all three). */
export interface Header {
  /** Its name, as UTF-8 text. May be empty. */
  readonly key: string
  /** Its bytes; null differs from empty. */
  readonly value: Uint8Array | null
}

/** The coordinates of a partition. */
export interface TopicPartition {
  /** The topic. */
  readonly topic: string
  /** The number of the partition, from 0. */
  readonly partition: number
}

/** The coordinates of one record. */
export interface RecordPosition extends TopicPartition {
  /** Position in the partition, 0 or more. */
  readonly offset: bigint
}

/** How far a record has come over all its tiers. Known when it was routed, dead-lettered or skipped by a rule, and when it halted its partition. */
export interface RetryProgress {
  /** Where the record was read first. */
  readonly origin: RecordPosition
  /** Handler calls over all tiers, those of the last delivery included. */
  readonly totalAttempts: number
  /** When its next attempt is due, epoch milliseconds. Absent when none follows by itself. */
  readonly nextAttemptMillis?: number
}

/** A record fetched from a partition. */
export interface ConsumerRecord extends RecordPosition {
  /** Epoch milliseconds; meaning (create or append time) as the topic is configured. */
  readonly timestamp: number
  /** Kafka: `message.timestamp.type` of the batch that the record is in. Default `CreateTime`: the producer's time. */
  readonly timestampType?: "CreateTime" | "LogAppendTime" | undefined
  /** The codec of the batch that the record was read from. Default `none`. */
  readonly compression?: Compression | undefined
  /** Whether the record was written in a transaction. Undefined where the adapter cannot tell. */
  readonly transactional?: boolean | undefined
  /** Original bytes; null is "no key", which differs from an empty key. */
  readonly key: Uint8Array | null
  /** Original bytes; null is a tombstone, which differs from an empty value. */
  readonly value: Uint8Array | null
  /** Headers in the order in which they were written. */
  readonly headers: ReadonlyArray<Header>
}

/** A record to publish. */
export interface ProducerRecord {
  /** The topic to publish to. */
  readonly topic: string
  /** Chooses the partition (Kafka's murmur2) unless `partition` is set; null spreads records over the partitions. */
  readonly key: Uint8Array | null
  /** null publishes a tombstone. */
  readonly value: Uint8Array | null
  /** Headers, written in this order. Default: none. */
  readonly headers?: ReadonlyArray<Header>
  /** Overrides the partition chosen by key. */
  readonly partition?: number
  /**
   * Epoch milliseconds; default: now. Where the topic refuses the time of this node's clock, an adapter tries the times around it (ruling 76).
   */
  readonly timestamp?: number
  /** Whether a `timestamp` that the topic refuses is replaced by the present time. Default false: such a record fails with `RecordRejected`. */
  readonly replaceTimestamp?: boolean
  /** The codec of the batch that the record travels in. Default: that of the producer. */
  readonly compression?: Compression | undefined
}

/** Where an acknowledged record is stored. */
export interface RecordMetadata extends RecordPosition {}

/**
 * A text key for maps of per-partition state. Unambiguous, since a topic name cannot contain a slash.
 */
export const partitionKey = (topic: string, partition: number): string => `${topic}/${partition}`
