/** A member of a consumer group as its coordinator knows it (KIP-447), and what a session has assigned to it. */
import type { TopicPartition } from "../../ConsumerRecord.ts"

/** One assignment of a partition. */
export interface Assignment extends TopicPartition {
  /** The generation in which the partition was assigned (from `Assigned`). */
  readonly generation: number
}

/** A member of a group, for offsets in a transaction (Kafka: `ConsumerGroupMetadata`). It is of one generation: ask the session for it at each transaction. */
export interface ConsumerGroupMetadata {
  /** Kafka: `group.id`. */
  readonly groupId: string
  /** The generation of the coordinator, or the member's epoch (KIP-848). It is not that of `Assigned`, which is the session's. */
  readonly generationId: number
  /** The id that the coordinator gave the member. */
  readonly memberId: string
  /** Kafka: `group.instance.id`. Undefined for a dynamic member. */
  readonly groupInstanceId: string | undefined
}
