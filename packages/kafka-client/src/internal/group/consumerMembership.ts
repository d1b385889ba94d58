/**
 * A member of a consumer group in Kafka's consumer protocol (KIP-848): the broker assigns, and the member reconciles. It gives up what the broker takes from it, and reports
 * that as released only when its records are drained; what stays is not touched.
 *
 * Every request is a heartbeat, which the coordinator answers at once. Session timeout and heartbeat interval are configurations of the group: the answers carry the interval.
 */
import { randomUUID } from "node:crypto"
import { LogLine } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { type ClientFailure, failure } from "../../ClientFailure.ts"
import type { Cluster } from "../connection/cluster.ts"
import type { Apis } from "../protocol/apis.ts"
import { BrokerAssignment } from "./brokerAssignment.ts"
import {
  type Assignor,
  assignorOf,
  joining,
  leaveConsumerGroup,
  refusedProtocol,
  sendMemberCommit,
  sendMemberHeartbeat
} from "./consumerGroupRequests.ts"
import {
  awaitCoordinator,
  type Contact,
  coordinatorCache,
  isTransient,
  noteContact,
  silentMillis
} from "./coordinatorCache.ts"
import type { MembershipOptions } from "./memberRequests.ts"
import type { Membership, MembershipListener } from "./membership.ts"
import type { Ownership } from "./ownership.ts"

/** The state of one member. */
interface Member extends Contact {
  readonly cluster: Cluster
  readonly options: MembershipOptions
  readonly listener: MembershipListener
  /** The last assignment of the broker. */
  readonly assignment: BrokerAssignment
  /** Opens to end the wait for the next heartbeat. */
  readonly wake: Latch.Latch
  readonly memberId: string
  /** The member's epoch as the coordinator said it last; 0 while out of the group. */
  epoch: number
  /** A heartbeat was sent: the coordinator may know the member. */
  isKnown: boolean
  /** The first answer came. */
  hasJoined: boolean
  /** Names one assignment of this session. Never decreases. */
  generation: number
  /** The last answered report of the owned partitions; undefined when the coordinator is to be told everything. */
  reported: string | undefined
  /** The heartbeat interval of the group, in milliseconds. */
  intervalMillis: number
  /** Until when a member that has joined asks often, by the monotonic clock. */
  eagerUntil: number
  /** When the last answered heartbeat was sent, by the monotonic clock. */
  confirmedAt: number
  assignor: Assignor
  /** It was said that another member has this member's name. */
  hasWarned: boolean
  /** The coordinator may know this member by its name, and not say so: the answer to a join was lost, or it has refused the epoch alone. */
  mayHaveName: boolean
}

/** The interval before the first answer: Kafka's default for groups. */
const defaultIntervalMillis = 5_000

/**
 * The interval of a member that has just joined, or that cannot take a partition yet. The others release what it is to get at their next heartbeat, and it can only learn of that by
 * asking.
 */
const eagerMillis = 100

/** How many heartbeat intervals of silence leave a membership unconfirmed. The coordinator waits longer: by default, for nine. */
const unconfirmedIntervals = 3

/** A session lasts at most so long by Kafka's default (`group.consumer.max.session.timeout.ms`), with time for the last retry. */
const longestSessionMillis = 65_000

const outOfGroup = new Set(["UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"])

/** One heartbeat, and what its answer changes. */
const beat = Effect.fnUntraced(function* (member: Member) {
  const { assignment, cluster, coordinator, memberId, options } = member
  const isJoin = member.epoch === joining
  const owned = isJoin ? [] : assignment.owned()
  const report = JSON.stringify(owned)
  const isWhole = isJoin || member.reported === undefined
  const sentAt = performance.now()
  const answer = yield* coordinator.ask((broker) => {
    member.isKnown = true
    const told = isWhole || report !== member.reported ? owned : null
    const identity = { memberId, generation: member.epoch }
    const { assignor } = member
    return cluster.watch(broker, sendMemberHeartbeat(broker, options, identity, { owned: told, assignor, isWhole }))
  })
  yield* noteContact(member)
  member.reported = report
  member.confirmedAt = sentAt
  noteAnswer(member, answer, isJoin)
  if (assignment.isPending || isJoin) yield* reconcile(member)
})

const noteAnswer = (
  member: Member,
  { assignment, heartbeatInterval, memberEpoch }: Apis["ConsumerGroupHeartbeat"]["response"],
  isJoin: boolean
): void => {
  member.epoch = memberEpoch
  member.intervalMillis = heartbeatInterval
  member.hasJoined = true
  // The others learn of the new member within one interval; they need time to give up what it gets.
  if (isJoin) member.eagerUntil = performance.now() + 2 * heartbeatInterval
  if (assignment !== undefined) member.assignment.set(assignment)
}

/** Owns what the broker has assigned, and reports it. */
const reconcile = Effect.fnUntraced(function* (member: Member) {
  const { assignment, listener, wake } = member
  const partitions = assignment.take(yield* listener.topicIds)
  member.generation = Math.max(member.epoch, member.generation + 1)
  listener.assigned(member.generation, partitions)
  if (JSON.stringify(assignment.owned()) !== member.reported) wake.openUnsafe()
})

const dropMembership = (member: Member): Effect.Effect<void> =>
  Effect.sync(() => {
    member.epoch = joining
    member.reported = undefined
    member.assignment.clear()
    member.listener.lost()
  })

/** Another member has the name. It may be this member's former process, which crashed; the coordinator gives the name away when its session is over. */
const awaitName = Effect.fnUntraced(function* (member: Member, failed: ClientFailure) {
  const { groupId, groupInstanceId } = member.options
  const held = `Another member of group '${groupId}' has group.instance.id '${groupInstanceId}': a former process that did not leave, until its session is over (group.consumer.session.timeout.ms), or another process with the same name`
  if (!member.hasWarned) yield* LogLine.warning(`${held}. This member waits for the name.`)
  member.hasWarned = true
  if ((yield* silentMillis(member)) > longestSessionMillis) return yield* Effect.fail(failure(failed.type, held))
  yield* Effect.sleep(eagerMillis)
})

/** The coordinator refuses a static member that joins while it is known, also under the same member id. It says that it will be back, and then joins. */
const releaseName = (member: Member): Effect.Effect<void> => {
  const answered = () => {
    member.mayHaveName = false
  }
  return Effect.match(leaveConsumerGroup(member.cluster, member.options, member.memberId), {
    onSuccess: answered,
    onFailure: (failed) => (isTransient(failed) ? undefined : answered())
  })
}

/** The brokers do not have the assignor (`group.consumer.assignors`). */
const useGroupsAssignor = (member: Member): Effect.Effect<void> => {
  const { groupId } = member.options
  const line = `The brokers do not have the assignor '${member.assignor}': group '${groupId}' is assigned by their default, and a member may get partitions of retry topics alone. Add it to group.consumer.assignors.`
  return Effect.andThen(
    LogLine.warning(line),
    Effect.sync(() => {
      member.assignor = null
    })
  )
}

/** Recovers from failures that joining again cures. Fails with all others, and when the coordinator was silent for a session timeout. */
const recover = Effect.fnUntraced(function* (member: Member, failed: ClientFailure) {
  if (failed.type === "UNRELEASED_INSTANCE_ID")
    return yield* member.mayHaveName ? releaseName(member) : awaitName(member, failed)
  member.mayHaveName = true
  if (outOfGroup.has(failed.type)) return yield* dropMembership(member)
  if (failed.type === "UNSUPPORTED_ASSIGNOR" && member.assignor !== null) return yield* useGroupsAssignor(member)
  if (!isTransient(failed)) {
    yield* dropMembership(member)
    return yield* Effect.fail(refusedProtocol(member.options.groupId, failed) ?? failed)
  }
  // The answer may have been on its way: the coordinator answers a whole report with all that it carried.
  member.reported = undefined
  yield* awaitCoordinator(member, failed, member.options.sessionTimeoutMillis, dropMembership(member))
})

const nextMillis = (member: Member): number =>
  member.assignment.isPending || performance.now() < member.eagerUntil
    ? Math.min(eagerMillis, member.intervalMillis)
    : member.intervalMillis

/** Sends heartbeats until one fails. */
const stay = (member: Member): Effect.Effect<never, ClientFailure> =>
  Effect.forever(
    Effect.gen(function* () {
      yield* Effect.timeoutOption(member.wake.await, nextMillis(member))
      member.wake.closeUnsafe()
      yield* beat(member)
    })
  )

export const makeConsumerMembership = (
  cluster: Cluster,
  options: MembershipOptions,
  ownership: Ownership,
  listener: MembershipListener
): Membership => {
  const member: Member = {
    cluster,
    options,
    listener,
    coordinator: coordinatorCache(cluster, options.groupId),
    assignment: new BrokerAssignment(ownership),
    wake: Latch.makeUnsafe(false),
    memberId: randomUUID(),
    epoch: joining,
    isKnown: false,
    hasJoined: false,
    generation: 0,
    reported: undefined,
    intervalMillis: defaultIntervalMillis,
    eagerUntil: 0,
    lastContactMillis: 0,
    failures: 0,
    confirmedAt: performance.now(),
    assignor: assignorOf(options),
    hasWarned: false,
    mayHaveName: false
  }
  const { memberId } = member
  const join = Effect.suspend(() => (options.mayJoin() ? beat(member) : Effect.never))
  const round = Effect.suspend(() =>
    member.epoch === joining ? Effect.andThen(join, stay(member)) : stay(member)
  ).pipe(Effect.catch((failed) => recover(member, failed)))
  const heartbeatNow = () => void member.wake.openUnsafe()
  return {
    run: Effect.andThen(noteContact(member), Effect.forever(round)),
    // The heartbeat reports the owned partitions; the broker notices by itself that there is more to assign.
    requestRejoin: heartbeatNow,
    heartbeatNow,
    memberId: () => (member.hasJoined ? memberId : ""),
    isUnconfirmed: () => performance.now() - member.confirmedAt >= unconfirmedIntervals * member.intervalMillis,
    identity: () => (member.epoch === joining ? undefined : { memberId, generation: member.epoch }),
    sendCommit: (coordinator, identity, offsets) => sendMemberCommit(coordinator, options, identity, offsets),
    leaving: () => (member.isKnown ? (connected) => leaveConsumerGroup(connected, options, memberId) : undefined)
  }
}
