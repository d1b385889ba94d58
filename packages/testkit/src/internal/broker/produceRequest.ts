/**
 * A produce request at the broker. Each record is accepted or refused separately; the accepted records of a partition form one batch.
 */
import { gzipSync } from "node:zlib"
import { BrokerError, type ConsumerRecord } from "@eventbus/core"
import * as Exit from "effect/Exit"
import type { Cluster } from "./cluster.ts"
import type { FaultDecision } from "./faultRuntime.ts"
import { type BatchSequence, isCompressed, type NewRecord } from "./partitionLog.ts"
import type { Topic } from "./topicRegistry.ts"
import type { ProducerEpoch } from "./transactionCoordinator.ts"

type Result = Exit.Exit<ConsumerRecord.RecordMetadata, BrokerError.BrokerError>

/** A record that waits for its acknowledgement. */
export interface PendingRecord extends NewRecord {
  timestamp: number
  /** The topic refuses the record's time. Returns the one to try next; undefined when there is none (ruling 76). */
  readonly otherTime: () => number | undefined
  readonly partition: number
  readonly sequence: number
  readonly bytes: number
  readonly deadlineMillis: number
  readonly answer: (result: Result) => void
}

/** The producer behind a request. */
export interface ProduceSource {
  readonly clientId: string
  /** Undefined for a producer without idempotence: the broker writes a retry again. */
  readonly producerId: number | undefined
  readonly epoch: ProducerEpoch | undefined
}

/** Bytes that Kafka adds to a single record: the batch header (61 bytes) and the record's own lengths. */
const batchOverheadBytes = 70

export const appendBatch = (
  cluster: Cluster,
  topicName: string,
  batch: ReadonlyArray<PendingRecord>,
  decision: FaultDecision,
  source: ProduceSource
): ReadonlyArray<Result> => {
  const { topics } = cluster.kernel
  const topic = topics.get(topicName)
  if (!topic) return batch.map(() => Exit.fail(new BrokerError.UnknownTopic({ topic: topicName })))
  const open = source.epoch && cluster.transactions.current(source.epoch)
  if (open instanceof BrokerError.ProducerFenced) return batch.map(() => Exit.fail(open))

  const maxBytes = Number(topics.setting(topic, "max.message.bytes"))
  const results: Array<Result> = new Array(batch.length)
  const runs = new Map<number, Array<number>>()
  batch.forEach((pending, index) => {
    const bytes = sentBytes(pending) + batchOverheadBytes
    const untimely = refusedTime(cluster, topic, topicName, pending)
    if (bytes > maxBytes) results[index] = Exit.fail(new BrokerError.RecordTooLarge({ topic: topicName, bytes }))
    else if (untimely !== undefined) results[index] = Exit.fail(untimely)
    else if (runs.has(pending.partition)) runs.get(pending.partition)!.push(index)
    else runs.set(pending.partition, [index])
  })
  for (const [partition, indexes] of runs) {
    const log = topic.partitions[partition]!
    if (open) open.logs.add(log)
    const records = indexes.map((index) => stored(cluster, topic, batch[index]!, decision))
    const sequence: BatchSequence | undefined =
      source.producerId === undefined
        ? undefined
        : { producerId: source.producerId, first: batch[indexes[0]!]!.sequence }
    const first = log.append(records, sequence, open?.mark)
    if (decision.copies === 2) log.append(records, undefined, open?.mark)
    cluster.kernel.journal({
      _tag: "Appended",
      clientId: source.clientId,
      topic: topicName,
      partition,
      firstOffset: first,
      records: records.length
    })
    indexes.forEach((index, position) => {
      results[index] = Exit.succeed({ topic: topicName, partition, offset: first + BigInt(position) })
    })
  }
  return results
}

/** The size of a record on the wire. The model knows one codec, which stands for all. */
const sentBytes = (pending: PendingRecord): number =>
  isCompressed(pending) && pending.value !== null
    ? pending.bytes - pending.value.length + gzipSync(pending.value).length
    : pending.bytes

/** The refusal of a record whose time is too far from the broker's. The client may have another time to try. */
const refusedTime = (
  cluster: Cluster,
  topic: Topic,
  name: string,
  pending: PendingRecord
): BrokerError.RecordRejected | undefined => {
  while (!isTimely(cluster, topic, pending.timestamp)) {
    const next = pending.otherTime()
    if (next === undefined) {
      const detail = "INVALID_TIMESTAMP: the timestamp of the message is out of acceptable range"
      return new BrokerError.RecordRejected({ topic: name, detail, field: "timestamp" })
    }
    pending.timestamp = next
  }
  return undefined
}

/** A broker that sets the time of records itself ignores that of the producer. */
const isTimely = (cluster: Cluster, topic: Topic, timestamp: number): boolean => {
  const { topics } = cluster.kernel
  if (topics.setting(topic, "message.timestamp.type") === "LogAppendTime") return true
  const nowMillis = cluster.kernel.nowMillis()
  return (
    timestamp >= nowMillis - Number(topics.setting(topic, "message.timestamp.before.max.ms")) &&
    timestamp <= nowMillis + Number(topics.setting(topic, "message.timestamp.after.max.ms"))
  )
}

const stored = (cluster: Cluster, topic: Topic, pending: PendingRecord, decision: FaultDecision): NewRecord => {
  const appendTime = cluster.kernel.topics.setting(topic, "message.timestamp.type") === "LogAppendTime"
  return {
    key: pending.key,
    value: decision.corrupt ? corrupted(pending.value, cluster) : pending.value,
    headers: pending.headers,
    compression: pending.compression,
    ...(appendTime
      ? { timestamp: cluster.kernel.nowMillis(), timestampType: "LogAppendTime" }
      : { timestamp: pending.timestamp })
  }
}

const corrupted = (value: Uint8Array | null, cluster: Cluster): Uint8Array | null => {
  if (value === null || value.length === 0) return value
  const copy = value.slice()
  const at = cluster.kernel.random.below(copy.length)
  copy[at] = copy[at]! ^ 0xff
  return copy
}
