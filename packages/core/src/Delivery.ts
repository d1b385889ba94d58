/**
 * The argument of a handler: one record, decoded, with where it came from.
 */
import type { ConsumerRecord, Header } from "./ConsumerRecord.ts"

/** One decoded record, as a handler gets it. */
export interface Delivery<out K, out V> {
  /** The decoded key. */
  readonly key: K
  /** The decoded value. */
  readonly value: V
  /** The record as fetched: original bytes, exact offset, headers in order. */
  readonly record: ConsumerRecord
  /**
   * The record's headers followed by `x-eventbus-binding-name`, `x-eventbus-received-timestamp` (epoch milliseconds as text) and
   * `x-eventbus-consumer-instance` (`{hostname}-{index}`). Headers of those names that came with the record are replaced.
   */
  readonly headers: ReadonlyArray<Header>
  /** The name of the binding. */
  readonly bindingName: string
  /** `{topic}-{partition}-{offset}` of the topic that the record was first in: names it through all tiers for as long as the topic exists. */
  readonly deduplicationKey: string
  /**
   * `{cluster}:{topic}-{partition}-{offset}@{timestamp}` of the topic that the record was first in, through all tiers: the default key of `idempotency` (ruling 77).
   * `cluster` is the alias. The timestamp (epoch milliseconds) tells a topic that was deleted and made again from the one before it.
   */
  readonly idempotencyKey: string
  /** 0 on the main topic, else the number of the retry tier. */
  readonly tier: number
  /** Which delivery in the tier this is, from 1; always 1 on the main topic. */
  readonly attempt: number
}

/** The argument of a `handleBatch` handler: consecutive records of one partition. */
export interface Batch<out K, out V> {
  /** The topic of the binding that all records are of, also where they come from a retry topic. */
  readonly topic: string
  /** The partition of all records. */
  readonly partition: number
  /** One or more, in offset order. */
  readonly deliveries: ReadonlyArray<Delivery<K, V>>
}
