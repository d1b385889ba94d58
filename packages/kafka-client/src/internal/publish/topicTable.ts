/**
 * The topics that a producer writes to: their partition logs and the leaders of their partitions. Routes each record to its partition; records of a
 * topic whose metadata is unknown wait, in order. Nothing here yields.
 */
import { BrokerError, type ConsumerRecord, Partitioner } from "@eventbus/core"
import type { TopicMetadata } from "../protocol/apis.ts"
import { PartitionLog, type PendingRecord } from "./partitionLog.ts"

/** Node id for a partition whose leader is missing or unknown. */
export const noLeader = -1

/** As much of a record as says where it goes. */
type Routed = Pick<ConsumerRecord.ProducerRecord, "key" | "partition">

interface UnroutedRecord {
  readonly record: Routed
  readonly pending: PendingRecord
}

class Topic {
  readonly name: string
  /** Logs by partition, also of partitions that no longer exist because the topic was recreated with fewer. */
  logs: ReadonlyArray<PartitionLog> = []
  /** Node ids by partition. Empty while the topic's metadata is unknown. */
  leaders: ReadonlyArray<number> = []
  unrouted: Array<UnroutedRecord> = []
  /** Milliseconds of the first of the metadata answers in a row that lacked the topic, or partitions with pending records. */
  missingSinceMillis: number | undefined
  nextPartition = 0

  constructor(name: string) {
    this.name = name
  }

  get busy(): boolean {
    return this.unrouted.length > 0 || this.logs.some(({ empty }) => !empty)
  }

  /** Logs with pending records whose partitions do not exist. */
  get removedLogs(): ReadonlyArray<PartitionLog> {
    return this.logs.slice(this.leaders.length).filter(({ empty }) => !empty)
  }

  leader(partition: number): number {
    return this.leaders[partition] ?? noLeader
  }

  rejected(partition: number): BrokerError.RecordRejected {
    const detail = `partition ${partition} does not exist; the topic has ${this.leaders.length}`
    return new BrokerError.RecordRejected({ topic: this.name, detail })
  }
}

export class TopicTable {
  readonly #topics = new Map<string, Topic>()

  /** Returns the id of the node whose loop has to be woken. */
  add(record: ConsumerRecord.ProducerRecord, pending: PendingRecord): number {
    let topic = this.#topics.get(record.topic)
    if (topic === undefined) {
      topic = new Topic(record.topic)
      this.#topics.set(record.topic, topic)
    }
    if (topic.leaders.length > 0) return this.#route(topic, record, pending)
    // Not the record itself: nobody reads it again when the call is over.
    topic.unrouted.push({ record: routedOf(record), pending })
    return noLeader
  }

  #route(topic: Topic, record: Routed, pending: PendingRecord): number {
    const count = topic.leaders.length
    const partition =
      record.partition ??
      (record.key === null ? topic.nextPartition++ % count : Partitioner.partitionFor(record.key, count))
    const log = partition < count ? topic.logs[partition] : undefined
    if (log === undefined) {
      pending.fail(topic.rejected(partition))
      return noLeader
    }
    log.add(pending)
    return topic.leader(partition)
  }

  /** Applies the metadata of a topic, and routes the records that waited for it. */
  learn({ topic: name, partitionMetadata }: TopicMetadata): void {
    const topic = this.#topics.get(name)
    if (topic === undefined) return
    const leaders = new Array<number>(partitionMetadata.length).fill(noLeader)
    for (const { partitionId, leader } of partitionMetadata) leaders[partitionId] = leader
    topic.logs = [
      ...leaders.map((_, partition) => topic.logs[partition] ?? new PartitionLog(name, partition)),
      ...topic.logs.slice(leaders.length)
    ]
    topic.leaders = leaders
    if (topic.removedLogs.length === 0) topic.missingSinceMillis = undefined
    const { unrouted } = topic
    topic.unrouted = []
    for (const { record, pending } of unrouted) if (!pending.settled) this.#route(topic, record, pending)
  }

  /** True when records are pending for partitions that the last metadata answer lacked. The node that answered may not know them yet. */
  hasRemovedPartitions(name: string): boolean {
    return (this.#topics.get(name)?.removedLogs.length ?? 0) > 0
  }

  failRemovedPartitions(name: string): void {
    const topic = this.#topics.get(name)
    for (const log of topic?.removedLogs ?? []) log.failAll(topic!.rejected(log.partition))
  }

  /** Notes a metadata answer without the topic, or without some of its partitions. Returns for how many milliseconds the answers have lacked them. */
  noteMissing(name: string, nowMillis: number): number {
    const topic = this.#topics.get(name)
    if (topic === undefined) return 0
    topic.missingSinceMillis ??= nowMillis
    return nowMillis - topic.missingSinceMillis
  }

  /** Fails all records of one topic. */
  failTopic(name: string, error: BrokerError.BrokerError): void {
    const topic = this.#topics.get(name)
    if (topic === undefined) return
    topic.missingSinceMillis = undefined
    for (const { pending } of topic.unrouted) pending.fail(error)
    topic.unrouted = []
    for (const log of topic.logs) log.failAll(error)
  }

  /** Fails records whose deadline (epoch milliseconds) has passed. */
  expire(now: number, error: BrokerError.BrokerError): void {
    for (const topic of this.#topics.values()) {
      for (const { pending } of topic.unrouted) if (pending.deadline <= now) pending.fail(error)
      topic.unrouted = topic.unrouted.filter(({ pending }) => !pending.settled)
      for (const log of topic.logs) log.expire(now, error)
    }
  }

  /** Topics with pending records. */
  busy(): ReadonlyArray<string> {
    return [...this.#topics.values()].filter(({ busy }) => busy).map(({ name }) => name)
  }

  /** Topics that exist, as far as is known. */
  known(): ReadonlyArray<string> {
    return [...this.#topics.values()].filter(({ logs }) => logs.length > 0).map(({ name }) => name)
  }

  /** True when records wait for metadata or for a leader. */
  leaderless(): boolean {
    return [...this.#topics.values()].some(({ unrouted }) => unrouted.length > 0) || this.ready(noLeader).length > 0
  }

  /** Logs that a node leads and that have a batch to send. */
  ready(node: number): Array<PartitionLog> {
    const ready: Array<PartitionLog> = []
    for (const topic of this.#topics.values()) {
      for (const log of topic.logs) if (log.ready && topic.leader(log.partition) === node) ready.push(log)
    }
    return ready
  }

  /** Ids of the leaders of all partitions. */
  nodes(): ReadonlySet<number> {
    return new Set([...this.#topics.values()].flatMap(({ leaders }) => leaders))
  }
}

const routedOf = ({ key, partition }: Routed): Routed => (partition === undefined ? { key } : { key, partition })
