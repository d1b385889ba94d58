/**
 * The committed offsets of one group, and the history of accepted commits.
 */
import { type Broker, ConsumerRecord } from "@eventbus/core"
import type { Kernel } from "./kernel.ts"

type TopicPartition = ConsumerRecord.TopicPartition

/** A commit that the coordinator accepted. */
export interface AcceptedCommit extends TopicPartition {
  readonly memberId: string
  readonly generation: number
  readonly offset: bigint
  readonly metadata: string
}

/** Number of remembered commits. At the limit the older half is dropped. */
const historyLimit = 200_000

export class CommittedOffsets {
  readonly entries = new Map<string, TopicPartition & { readonly offset: bigint; readonly metadata: string }>()
  private accepted: Array<AcceptedCommit> = []
  private readonly groupId: string
  private readonly kernel: Kernel

  constructor(groupId: string, kernel: Kernel) {
    this.groupId = groupId
    this.kernel = kernel
  }

  get history(): ReadonlyArray<AcceptedCommit> {
    return this.accepted
  }

  /** Kafka stores -1 for "none", so a committed -1 reads as none. */
  committed(key: string): bigint | undefined {
    const offset = this.entries.get(key)?.offset
    return offset === -1n ? undefined : offset
  }

  ofTopics(topics: ReadonlySet<string>): ReadonlyArray<Broker.CommittedOffset> {
    return Array.from(this.entries.values()).filter(({ topic, offset }) => topics.has(topic) && offset !== -1n)
  }

  /** Stores an offset without checks, as the broker does. */
  record(commit: AcceptedCommit): void {
    const { topic, partition, offset, metadata, memberId, generation } = commit
    this.entries.set(ConsumerRecord.partitionKey(topic, partition), { topic, partition, offset, metadata })
    if (this.accepted.length >= historyLimit) this.accepted = this.accepted.slice(historyLimit / 2)
    this.accepted.push(commit)
    const offsets = [{ topic, partition, offset, metadata }]
    this.kernel.journal({ _tag: "Committed", groupId: this.groupId, memberId, generation, offsets })
  }

  forgetTopic(topic: string): void {
    for (const [key, entry] of this.entries) if (entry.topic === topic) this.entries.delete(key)
  }
}
