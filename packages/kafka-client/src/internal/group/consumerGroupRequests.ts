/** The requests by which a member takes part in its group in Kafka's consumer protocol (KIP-848). */
import type { Broker, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { type ClientFailure, failure } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"
import type { Cluster } from "../connection/cluster.ts"
import { commitsByTopic } from "../offsets/committedOffsets.ts"
import type { Apis } from "../protocol/apis.ts"
import type { PartitionsOfTopic } from "../protocol/memberApis.ts"
import { byTopic } from "../wire/byTopic.ts"
import { check, failureOfCode } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"
import type { MemberIdentity, MembershipOptions } from "./memberRequests.ts"

/** The member epoch of a heartbeat that joins. */
export const joining = 0

/** The member epochs of a last heartbeat: a member that does not come back, and a static one that will. */
const leaving = { forGood: -1, forNow: -2 }

/** A heartbeat tells this beside the member's epoch; null where nothing has changed. */
export interface Report {
  readonly owned: ReadonlyArray<PartitionsOfTopic> | null
  /** The assignor that the member asks for; null for the group's own. */
  readonly assignor: Assignor
  /** Also everything that does not change, so that the coordinator answers with the whole assignment. */
  readonly isWhole: boolean
}

export type Assignor = "range" | null

/**
 * Kafka's default assignor shares out the partitions of all topics together: a member that joins may get those of retry topics alone, and none of the source. `range` shares out
 * each topic by itself.
 */
export const assignorOf = ({ topics }: Pick<MembershipOptions, "topics">): Assignor =>
  topics.length > 1 ? "range" : null

/** The member releases by itself first. One that the coordinator removes loses everything. */
const rebalanceGraceMillis = 2_000

const asBefore = { rebalanceTimeout: -1, topics: null, assignor: null }

/** Joins, or stays. */
export const sendMemberHeartbeat = (
  broker: NodeClient,
  options: MembershipOptions,
  { memberId, generation }: MemberIdentity,
  { owned, assignor, isWhole }: Report
): Effect.Effect<Apis["ConsumerGroupHeartbeat"]["response"], ClientFailure> => {
  const { groupId, groupInstanceId, rebalanceTimeoutMillis, topics } = options
  const answer = call(broker, "ConsumerGroupHeartbeat", {
    ...{ groupId, groupInstanceId, memberId, memberEpoch: generation, owned },
    ...(isWhole ? { rebalanceTimeout: rebalanceTimeoutMillis + rebalanceGraceMillis, topics, assignor } : asBefore)
  })
  return Effect.tap(answer, checkAnswer)
}

/** Leaves at once. A static member says that it will be back: without that its successor is refused until its session is over. */
export const leaveConsumerGroup = Effect.fnUntraced(function* (
  cluster: Cluster,
  { groupId, groupInstanceId }: Pick<MembershipOptions, "groupId" | "groupInstanceId">,
  memberId: string
) {
  const memberEpoch = groupInstanceId === null ? leaving.forGood : leaving.forNow
  const payload = { groupId, groupInstanceId, memberId, memberEpoch, owned: null, ...asBefore }
  const answer = yield* cluster.askCoordinator("group", groupId, (broker) =>
    call(broker, "ConsumerGroupHeartbeat", payload)
  )
  yield* checkAnswer(answer)
})

const checkAnswer = ({ errorCode, errorMessage }: Apis["ConsumerGroupHeartbeat"]["response"]) => {
  const failed = failureOfCode(errorCode, errorMessage || null)
  return failed === undefined ? Effect.void : Effect.fail(failed)
}

/** Commits in one request. */
export const sendMemberCommit = Effect.fnUntraced(function* (
  coordinator: NodeClient,
  { groupId, groupInstanceId }: Pick<MembershipOptions, "groupId" | "groupInstanceId">,
  { memberId, generation }: MemberIdentity,
  offsets: ReadonlyArray<Broker.OffsetCommit>
) {
  const answer = yield* call(coordinator, "ConsumerGroupOffsetCommit", {
    ...{ groupId, groupInstanceId, memberId, groupGenerationId: generation },
    topics: commitsByTopic(offsets)
  })
  yield* check(...answer.responses.flatMap(({ partitions }) => partitions.map(({ errorCode }) => errorCode)))
})

/** Partitions by the id of their topic, as heartbeats report them: in one order, so that two reports of the same are equal. */
export const byTopicId = (
  partitions: ReadonlyArray<ConsumerRecord.TopicPartition>,
  idOf: (partition: ConsumerRecord.TopicPartition) => string | undefined
): ReadonlyArray<PartitionsOfTopic> => {
  const known = partitions.flatMap((at) => {
    const topic = idOf(at)
    return topic === undefined ? [] : [{ topic, partition: at.partition }]
  })
  return byTopic(known, ({ partition }) => partition)
    .map(({ topic, partitions }) => ({ topicId: topic, partitions: partitions.toSorted((a, b) => a - b) }))
    .sort((a, b) => (a.topicId < b.topicId ? -1 : 1))
}

/** The broker has no groups of the consumer protocol, or lets this member have none. The text names the option, its value, and what is allowed. */
export const refusedProtocol = (groupId: string, { type, detail }: ClientFailure): ClientFailure | undefined => {
  const refused = (reason: string, allowed: string) =>
    failure(type, `groupProtocol "consumer" of group '${groupId}': ${reason}; allowed is ${allowed}`)
  switch (type) {
    case "UNSUPPORTED_VERSION":
      return refused(
        `${detail}. The protocol needs Apache Kafka 4.0 with the consumer protocol in group.coordinator.rebalance.protocols`,
        '"classic"'
      )
    case "GROUP_ID_NOT_FOUND":
    case "INCONSISTENT_GROUP_PROTOCOL":
      return refused(
        `the group has members of the classic protocol, and the broker does not move it: ${detail}`,
        '"classic" until they have left, or group.consumer.migration.policy "bidirectional" or "upgrade" on the brokers'
      )
    default:
      return undefined
  }
}
