/** Offsets in the logs of partitions, requested from their leaders in parallel. */
import { ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { type ClientFailure, failure } from "../../ClientFailure.ts"
import type { Cluster } from "../connection/cluster.ts"
import { untilMoved } from "../connection/untilMoved.ts"
import type { TopicMetadata } from "../protocol/apis.ts"
import { byTopic } from "../wire/byTopic.ts"
import { check } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"

/** Timestamps of ListOffsets that mean the log start and the log end. */
export const earliest = -2
export const latest = -1

export type IsolationLevel = "read_committed" | "read_uncommitted"

/** As Kafka's requests encode it. */
export const isolationCode = (isolation: IsolationLevel): 0 | 1 => (isolation === "read_committed" ? 1 : 0)

/** Partitions by the node id of their leader; -1 for partitions without a leader at the moment. */
export const byLeader = <P extends ConsumerRecord.TopicPartition>(
  partitions: ReadonlyArray<P>,
  metadata: ReadonlyMap<string, TopicMetadata>
): ReadonlyMap<number, ReadonlyArray<P>> => {
  const nodes = new Map<number, Array<P>>()
  for (const target of partitions) {
    const found = metadata
      .get(target.topic)
      ?.partitionMetadata.find(({ partitionId }) => partitionId === target.partition)
    const leader = found?.leader ?? -1
    const led = nodes.get(leader)
    if (led === undefined) nodes.set(leader, [target])
    else led.push(target)
  }
  return nodes
}

/** Start and end of one log, as a client of this isolation sees it. */
export const logBounds = Effect.fnUntraced(function* (
  cluster: Cluster,
  at: ConsumerRecord.TopicPartition,
  isolation: IsolationLevel
) {
  const metadata = yield* cluster.metadata([at.topic])
  const offsetAt = (timestamp: number) =>
    Effect.map(
      listOffsets(cluster, metadata, [at], timestamp, isolation),
      (found) => found.get(ConsumerRecord.partitionKey(at.topic, at.partition))!
    )
  const [logStart, logEnd] = yield* Effect.all([offsetAt(earliest), offsetAt(latest)], { concurrency: "unbounded" })
  return { logStart, logEnd }
})

const notLeader = failure("NOT_LEADER_OR_FOLLOWER", "another node has become the leader")

/** Looks whether a node is no longer the leader of all of the partitions. */
const movedFrom = (cluster: Cluster, node: number, led: ReadonlyArray<ConsumerRecord.TopicPartition>) =>
  Effect.map(cluster.metadata([...new Set(led.map(({ topic }) => topic))]), (metadata) => {
    const leaders = byLeader(led, metadata)
    return leaders.get(node)?.length === led.length ? undefined : notLeader
  })

/** Offsets by partition key: of the first record at or after `timestamp` (epoch milliseconds; -1 without such a record), or of `earliest` or `latest`. */
export const listOffsets = (
  cluster: Cluster,
  metadata: ReadonlyMap<string, TopicMetadata>,
  partitions: ReadonlyArray<ConsumerRecord.TopicPartition>,
  timestamp: number,
  isolation: IsolationLevel
): Effect.Effect<ReadonlyMap<string, bigint>, ClientFailure> =>
  Effect.map(
    Effect.forEach(
      byLeader(partitions, metadata),
      ([node, led]) =>
        Effect.gen(function* () {
          const payload = {
            isolationLevel: isolationCode(isolation),
            topics: byTopic(led, ({ partition }) => ({ partition, timestamp }))
          }
          const broker = yield* cluster.node(node)
          const answer = yield* untilMoved(
            cluster.watch(broker, call(broker, "ListOffsets", payload)),
            movedFrom(cluster, node, led)
          )
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
