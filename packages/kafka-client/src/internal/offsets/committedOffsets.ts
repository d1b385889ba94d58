/** Committed offsets of a group, as its coordinator stores them. */
import { type Broker, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { NodeClient } from "../../Transport.ts"
import type { Apis } from "../protocol/apis.ts"
import { byTopic } from "../wire/byTopic.ts"
import { check } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"

/** Committed offsets by partition key. A partition without one (-1 in Kafka's answer) is left out; other negative values are kept. */
export const fetchCommitted = Effect.fnUntraced(function* (
  coordinator: NodeClient,
  groupId: string,
  partitions: ReadonlyArray<ConsumerRecord.TopicPartition>
) {
  const committed = new Map<string, Broker.CommittedOffset>()
  // An empty list of topics would mean all topics.
  if (partitions.length === 0) return committed
  const answer = yield* call(coordinator, "OffsetFetch", {
    groupId,
    topics: byTopic(partitions, ({ partition }) => ({ partition }))
  })
  yield* check(
    answer.errorCode,
    ...answer.responses.flatMap(({ partitions }) => partitions.map(({ errorCode }) => errorCode))
  )
  for (const { topic, partitions } of answer.responses) {
    for (const { partition, offset, metadata } of partitions) {
      if (offset === "-1") continue
      const commit = { topic, partition, offset: BigInt(offset), metadata: metadata ?? "" }
      committed.set(ConsumerRecord.partitionKey(topic, partition), commit)
    }
  }
  return committed
})

/** An offset to commit, for whichever assignment. */
export interface OffsetToCommit extends ConsumerRecord.TopicPartition {
  readonly offset: bigint
  readonly metadata?: string
}

/** Commits as requests list them. */
export const commitsByTopic = (offsets: ReadonlyArray<OffsetToCommit>): Apis["OffsetCommit"]["payload"]["topics"] =>
  byTopic(offsets, ({ partition, offset, metadata }) => ({
    partition,
    offset: String(offset),
    metadata: metadata ?? ""
  }))

/** Commits in one request. An empty member id with generation -1 is for groups without members. */
export const sendCommit = Effect.fnUntraced(function* (
  coordinator: NodeClient,
  groupId: string,
  identity: { readonly memberId: string; readonly generation: number },
  offsets: ReadonlyArray<OffsetToCommit>
) {
  const answer = yield* call(coordinator, "OffsetCommit", {
    groupId,
    groupGenerationId: identity.generation,
    memberId: identity.memberId,
    topics: commitsByTopic(offsets)
  })
  yield* check(...answer.responses.flatMap(({ partitions }) => partitions.map(({ errorCode }) => errorCode)))
})
