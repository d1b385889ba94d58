/** The seam between a session and the protocol of its group: `classicMembership.ts` speaks the classic one, `consumerMembership.ts` the consumer protocol (KIP-848). */
import type { Broker, ConsumerRecord } from "@eventbus/core"
import type * as Effect from "effect/Effect"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"
import type { Cluster } from "../connection/cluster.ts"
import type { MemberIdentity } from "./memberRequests.ts"

/** Told of changes of the membership. Called synchronously; must not throw. */
export interface MembershipListener {
  /** The partitions of a new generation. */
  readonly assigned: (generation: number, partitions: ReadonlyArray<ConsumerRecord.TopicPartition>) => void
  /** The member is out of the group: it owns nothing any more. */
  readonly lost: () => void
  /** Gives up all partitions: ends when the member owns none any more. */
  readonly giveUp: Effect.Effect<void>
  /** The ids of the session's topics by their names, asked now. Before it answers, the session loses what it owns of a topic that was made again. */
  readonly topicIds: Effect.Effect<ReadonlyMap<string, string>, ClientFailure>
}

/** Leaves the group over whichever connections. */
export type Leave = (cluster: Cluster) => Effect.Effect<void, ClientFailure>

export interface Membership {
  /** Ends only with a failure that joining again does not cure. */
  readonly run: Effect.Effect<never, ClientFailure>
  /** Joins again soon: what this member owns, or what there is to assign, has changed. */
  readonly requestRejoin: () => void
  /** Sends the next heartbeat now: a refused commit has hinted that the group is changing. */
  readonly heartbeatNow: () => void
  /** The last id that the coordinator assigned, also when the member is out of the group by now; empty before the first. */
  readonly memberId: () => string
  /** Whether the coordinator may have removed the member: it counts from the last request that it answered. */
  readonly isUnconfirmed: () => boolean
  /** The identity whose commits the coordinator accepts now; undefined while out of the group. */
  readonly identity: () => MemberIdentity | undefined
  /** Commits under an identity, which the coordinator refuses when it is over. */
  readonly sendCommit: (
    coordinator: NodeClient,
    identity: MemberIdentity,
    offsets: ReadonlyArray<Broker.OffsetCommit>
  ) => Effect.Effect<void, ClientFailure>
  /** How the member leaves when its session ends; undefined where it says nothing: it never was a member, or its protocol lets a static member stay. */
  readonly leaving: () => Leave | undefined
}
