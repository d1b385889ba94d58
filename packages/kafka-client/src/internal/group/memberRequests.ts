/** The requests by which a member takes part in its group (classic protocol, KIP-345 for static members). */
import { Adapter, type Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"
import type { Cluster } from "../connection/cluster.ts"
import type { Apis } from "../protocol/apis.ts"
import { check } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"
import type { Member } from "./assigner.ts"
import { encodeMember } from "./memberProtocol.ts"

export interface MembershipOptions {
  readonly groupId: string
  /** null for a dynamic member. */
  readonly groupInstanceId: string | null
  readonly topics: ReadonlyArray<string>
  readonly partitionAssignmentStrategy: ReadonlyArray<Broker.AssignmentStrategy>
  readonly copartitionedTopics: ReadonlyArray<ReadonlyArray<string>>
  readonly sessionTimeoutMillis: number
  readonly rebalanceTimeoutMillis: number
  readonly heartbeatIntervalMillis: number
  /** Asked before the session joins as a new member. */
  readonly mayJoin: () => boolean
}

/** The member id and the generation by which the coordinator knows a member. */
export interface MemberIdentity {
  readonly memberId: string
  readonly generation: number
}

const memberIdRequired = 79

/** Joins. A coordinator that knows no member id first assigns one, and the member joins again under it. */
export const joinGroup = (
  broker: NodeClient,
  options: MembershipOptions,
  memberId: string,
  claim: Pick<Member, "owned" | "generation">,
  onMemberId: (memberId: string) => void
): Effect.Effect<Apis["JoinGroup"]["response"], ClientFailure> => {
  const { topics, copartitionedTopics, partitionAssignmentStrategy: listed } = options
  const metadata = encodeMember({ topics, copartitionedTopics, ...claim }, Adapter.isEager(listed))
  const send = (memberId: string) =>
    call(broker, "JoinGroup", {
      groupId: options.groupId,
      sessionTimeout: options.sessionTimeoutMillis,
      rebalanceTimeout: options.rebalanceTimeoutMillis,
      memberId,
      groupInstanceId: options.groupInstanceId,
      protocolType: "consumer",
      groupProtocols: listed.map((name) => ({ name, metadata }))
    })
  return Effect.flatMap(send(memberId), (answer) => {
    if (answer.memberId === "" || answer.errorCode !== memberIdRequired) return Effect.succeed(answer)
    onMemberId(answer.memberId)
    return send(answer.memberId)
  })
}

/** Gets the assignment of this member; the leader sends everybody's. */
export const syncGroup = (
  broker: NodeClient,
  { groupId, groupInstanceId }: MembershipOptions,
  { memberId, generation }: MemberIdentity,
  groupAssignment: Apis["SyncGroup"]["payload"]["groupAssignment"]
): Effect.Effect<Apis["SyncGroup"]["response"], ClientFailure> =>
  call(broker, "SyncGroup", { groupId, generationId: generation, memberId, groupInstanceId, groupAssignment })

export const sendHeartbeat = (
  broker: NodeClient,
  { groupId, groupInstanceId }: MembershipOptions,
  { memberId, generation }: MemberIdentity
): Effect.Effect<Apis["Heartbeat"]["response"], ClientFailure> =>
  call(broker, "Heartbeat", { groupId, groupGenerationId: generation, memberId, groupInstanceId })

/** Removes a static member by its name, whatever its member id (KIP-345). Says nothing when the group has no such member. LeaveGroup v3 (Kafka 2.4). */
export const removeStaticMember = Effect.fnUntraced(function* (
  cluster: Cluster,
  groupId: string,
  groupInstanceId: string
) {
  const answer = yield* cluster.askCoordinator("group", groupId, (broker) =>
    call(broker, "LeaveGroup", { groupId, memberId: "", groupInstanceId })
  )
  yield* check(answer.errorCode)
})

/** Leaves at once, over any connection: the member's own connection may be waiting for a JoinGroup. */
export const leaveGroup = Effect.fnUntraced(function* (cluster: Cluster, groupId: string, memberId: string) {
  const answer = yield* cluster.askCoordinator("group", groupId, (broker) =>
    call(broker, "LeaveGroup", { groupId, memberId })
  )
  yield* check(answer.errorCode)
})
