/**
 * The topics that a producer writes to: their partition logs and who leads them. Gives each record to its partition; records of a
 * topic that is not known yet wait, in order. Nothing here yields.
 */
import { BrokerError, type ConsumerRecord, Partitioner } from "@eventbus/core"
import type { TopicMetadata } from "../wire/apis.ts"
import { PartitionLog, type Pending } from "./partitionLog.ts"

/** The node of a partition that has no leader, or is not known. */
export const nobody = -1

interface Arriving {
  readonly record: ConsumerRecord.ProducerRecord
  readonly pending: Pending
}

class Topic {
  readonly name: string
  /** Also of partitions that are gone, when the topic was made anew with fewer. */
  logs: ReadonlyArray<PartitionLog> = []
  leaders: ReadonlyArray<number> = []
  arriving: Array<Arriving> = []
  /** The first of the looks in a row that did not find it, or not all of its partitions that have something on its way. */
  missedAtMillis: number | undefined
  nextPartition = 0

  constructor(name: string) {
    this.name = name
  }

  get busy(): boolean {
    return this.arriving.length > 0 || this.logs.some(({ empty }) => !empty)
  }

  /** Logs of partitions that do not exist, with something on its way. */
  get gone(): ReadonlyArray<PartitionLog> {
    return this.logs.slice(this.leaders.length).filter(({ empty }) => !empty)
  }

  leader(partition: number): number {
    return this.leaders[partition] ?? nobody
  }

  rejected(partition: number): BrokerError.RecordRejected {
    const detail = `partition ${partition} does not exist; the topic has ${this.leaders.length}`
    return new BrokerError.RecordRejected({ topic: this.name, detail })
  }
}

export class TopicTable {
  readonly #topics = new Map<string, Topic>()

  /** Returns the node that has to be woken. */
  add(record: ConsumerRecord.ProducerRecord, pending: Pending): number {
    let topic = this.#topics.get(record.topic)
    if (topic === undefined) {
      topic = new Topic(record.topic)
      this.#topics.set(record.topic, topic)
    }
    if (topic.leaders.length > 0) return this.#route(topic, record, pending)
    topic.arriving.push({ record, pending })
    return nobody
  }

  #route(topic: Topic, record: ConsumerRecord.ProducerRecord, pending: Pending): number {
    const count = topic.leaders.length
    const partition =
      record.partition ??
      (record.key === null ? topic.nextPartition++ % count : Partitioner.partitionFor(record.key, count))
    const log = partition < count ? topic.logs[partition] : undefined
    if (log === undefined) {
      pending.fail(topic.rejected(partition))
      return nobody
    }
    log.add(pending)
    return topic.leader(partition)
  }

  /** Takes over what was learned about a topic; waiting records go to their partitions. */
  learn({ topic: name, partitionMetadata }: TopicMetadata): void {
    const topic = this.#topics.get(name)
    if (topic === undefined) return
    const leaders = new Array<number>(partitionMetadata.length).fill(nobody)
    for (const { partitionId, leader } of partitionMetadata) leaders[partitionId] = leader
    topic.logs = [
      ...leaders.map((_, partition) => topic.logs[partition] ?? new PartitionLog(name, partition)),
      ...topic.logs.slice(leaders.length)
    ]
    topic.leaders = leaders
    if (topic.gone.length === 0) topic.missedAtMillis = undefined
    const arriving = topic.arriving
    topic.arriving = []
    for (const { record, pending } of arriving) if (!pending.settled) this.#route(topic, record, pending)
  }

  /** Whether something is on its way to partitions that the topic does not have any more, or not yet as far as a node knows. */
  hasGone(name: string): boolean {
    return (this.#topics.get(name)?.gone.length ?? 0) > 0
  }

  failGone(name: string): void {
    const topic = this.#topics.get(name)
    for (const log of topic?.gone ?? []) log.failAll(topic!.rejected(log.partition))
  }

  /** Told of a look that did not find the topic, or not all of it; returns for how long none has. */
  missed(name: string, nowMillis: number): number {
    const topic = this.#topics.get(name)
    if (topic === undefined) return 0
    topic.missedAtMillis ??= nowMillis
    return nowMillis - topic.missedAtMillis
  }

  /** Fails everything for one topic. */
  failTopic(name: string, error: BrokerError.BrokerError): void {
    const topic = this.#topics.get(name)
    if (topic === undefined) return
    topic.missedAtMillis = undefined
    for (const { pending } of topic.arriving) pending.fail(error)
    topic.arriving = []
    for (const log of topic.logs) log.failAll(error)
  }

  failAll(error: BrokerError.BrokerError): void {
    for (const name of this.#topics.keys()) this.failTopic(name, error)
  }

  expire(now: number, error: BrokerError.BrokerError): void {
    for (const topic of this.#topics.values()) {
      for (const { pending } of topic.arriving) if (pending.deadline <= now) pending.fail(error)
      topic.arriving = topic.arriving.filter(({ pending }) => !pending.settled)
      for (const log of topic.logs) log.expire(now, error)
    }
  }

  /** Topics with something on its way. */
  busy(): ReadonlyArray<string> {
    return [...this.#topics.values()].filter(({ busy }) => busy).map(({ name }) => name)
  }

  /** Topics that exist. */
  known(): ReadonlyArray<string> {
    return [...this.#topics.values()].filter(({ logs }) => logs.length > 0).map(({ name }) => name)
  }

  /** True when something waits for a leader. */
  leaderless(): boolean {
    return [...this.#topics.values()].some(({ arriving }) => arriving.length > 0) || this.ready(nobody).length > 0
  }

  /** The logs that a node leads and that have something to send. */
  ready(node: number): ReadonlyArray<PartitionLog> {
    return [...this.#topics.values()].flatMap((topic) =>
      topic.logs.filter((log, partition) => topic.leader(partition) === node && log.ready)
    )
  }

  nodes(): ReadonlySet<number> {
    return new Set([...this.#topics.values()].flatMap(({ leaders }) => leaders))
  }
}
