/**
 * A produce request at the broker. Each record is accepted or refused separately; the accepted records of a partition form one batch.
 */
import { BrokerError, type ConsumerRecord } from "@eventbus/core"
import { Exit } from "effect"
import type { Cluster } from "./cluster.ts"
import type { FaultDecision } from "./faultRuntime.ts"
import type { BatchSequence, NewRecord } from "./partitionLog.ts"
import type { Topic } from "./topicRegistry.ts"
import type { ProducerEpoch } from "./transactionCoordinator.ts"

type Result = Exit.Exit<ConsumerRecord.RecordMetadata, BrokerError.BrokerError>

/** A record that waits for its acknowledgement. */
export interface PendingRecord extends NewRecord {
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
    const bytes = pending.bytes + batchOverheadBytes
    if (bytes > maxBytes) results[index] = Exit.fail(new BrokerError.RecordTooLarge({ topic: topicName, bytes }))
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

const stored = (cluster: Cluster, topic: Topic, pending: PendingRecord, decision: FaultDecision): NewRecord => {
  const appendTime = cluster.kernel.topics.setting(topic, "message.timestamp.type") === "LogAppendTime"
  return {
    key: pending.key,
    value: decision.corrupt ? corrupted(pending.value, cluster) : pending.value,
    headers: pending.headers,
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
