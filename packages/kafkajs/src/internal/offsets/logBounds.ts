/** Log start and end of partitions, asked of their leaders in parallel. */
import { ConsumerRecord } from "@eventbus/core"
import { Effect } from "effect"
import type { Cluster } from "../connection/cluster.ts"
import type { TopicMetadata } from "../wire/apis.ts"
import { type ClientFailure, check } from "../wire/errors.ts"
import { call } from "../wire/wire.ts"

export const earliest = -2
export const latest = -1

export type Isolation = "read_committed" | "read_uncommitted"

export const isolationLevel = (isolation: Isolation): 0 | 1 => (isolation === "read_committed" ? 1 : 0)

/** Partitions by the node that leads them; -1 for those that nobody leads at the moment. */
export const byLeader = (
  partitions: ReadonlyArray<ConsumerRecord.TopicPartition>,
  metadata: ReadonlyMap<string, TopicMetadata>
): ReadonlyMap<number, ReadonlyArray<ConsumerRecord.TopicPartition>> => {
  const nodes = new Map<number, Array<ConsumerRecord.TopicPartition>>()
  for (const target of partitions) {
    const found = metadata
      .get(target.topic)
      ?.partitionMetadata.find(({ partitionId }) => partitionId === target.partition)
    const leader = found?.leader ?? -1
    const of = nodes.get(leader)
    if (of === undefined) nodes.set(leader, [target])
    else of.push(target)
  }
  return nodes
}

/** Groups partitions by topic, as Kafka's requests want them. */
export const byTopic = <P extends ConsumerRecord.TopicPartition, A>(
  partitions: ReadonlyArray<P>,
  entry: (partition: P) => A
): ReadonlyArray<{ readonly topic: string; readonly partitions: ReadonlyArray<A> }> => {
  const topics = new Map<string, Array<A>>()
  for (const partition of partitions) {
    const of = topics.get(partition.topic)
    if (of === undefined) topics.set(partition.topic, [entry(partition)])
    else of.push(entry(partition))
  }
  return [...topics].map(([topic, partitions]) => ({ topic, partitions }))
}

/** Offsets by partition key for a timestamp, `earliest` or `latest`; -1 when no record is that young. */
export const listOffsets = (
  cluster: Cluster,
  metadata: ReadonlyMap<string, TopicMetadata>,
  partitions: ReadonlyArray<ConsumerRecord.TopicPartition>,
  timestamp: number,
  isolation: Isolation
): Effect.Effect<ReadonlyMap<string, bigint>, ClientFailure> =>
  Effect.map(
    Effect.forEach(
      byLeader(partitions, metadata),
      ([node, led]) =>
        Effect.gen(function* () {
          const broker = yield* cluster.node(node)
          const answer = yield* call(broker, "ListOffsets", {
            isolationLevel: isolationLevel(isolation),
            topics: byTopic(led, ({ partition }) => ({ partition, timestamp }))
          })
          yield* check(...answer.responses.flatMap(({ partitions }) => partitions.map(({ errorCode }) => errorCode)))
          return answer.responses.flatMap(({ topic, partitions }) =>
            partitions.map(
              ({ partition, offset }) => [ConsumerRecord.partitionKey(topic, partition), BigInt(offset)] as const
            )
          )
        }),
      { concurrency: "unbounded" }
    ),
    (answers) => new Map(answers.flat())
  )
