/** The subjects of events: a binding, one of its consumers, a partition, a record. */
import type { ConsumerRecord, TopicPartition } from "../../ConsumerRecord.ts"

export interface OfBinding {
  /** The alias of the binding's cluster. */
  readonly cluster: string
  /** The name of the binding. */
  readonly binding: string
}

export interface OfConsumer extends OfBinding {
  /** Index of the consumer in its binding, from 0. */
  readonly consumer: number
}

export interface OfPartition extends OfConsumer, TopicPartition {
  /** The generation in which the partition was assigned. */
  readonly generation: number
}

export interface OfRecord extends OfPartition {
  /** The record as fetched. */
  readonly record: ConsumerRecord
}
