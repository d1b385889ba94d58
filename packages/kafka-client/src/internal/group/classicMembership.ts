/**
 * A member of a consumer group in Kafka's classic protocol: it joins, syncs, sends heartbeats and joins again. `session/consumerSession.ts` lets it leave.
 *
 * The coordinator holds a JoinGroup until all members have joined, and answers the requests of one connection one at a time. A member therefore
 * has connections of its own (a `Cluster`), so that commits and fetches never wait for a rebalance.
 */
import { Adapter } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { Cluster } from "../connection/cluster.ts"
import { sendCommit } from "../offsets/committedOffsets.ts"
import { check } from "../wire/failures.ts"
import { awaitCoordinator, type Contact, coordinatorCache, isTransient, noteContact } from "./coordinatorCache.ts"
import { checkTopics, refused, unreadable } from "./foreignMembers.ts"
import { decideAssignments } from "./leader.ts"
import { type Assignment, decodeAssignment } from "./memberProtocol.ts"
import { joinGroup, leaveGroup, type MembershipOptions, sendHeartbeat, syncGroup } from "./memberRequests.ts"
import type { Membership, MembershipListener } from "./membership.ts"
import type { Ownership } from "./ownership.ts"

/** The state of one member. */
interface Member extends Contact {
  readonly cluster: Cluster
  readonly options: MembershipOptions
  readonly ownership: Ownership
  readonly listener: MembershipListener
  /** It lists an eager protocol, and owns nothing while it joins. */
  readonly isEager: boolean
  /** Opens to end the wait for the next heartbeat. */
  readonly wake: Latch.Latch
  /** Empty while out of the group. */
  memberId: string
  lastMemberId: string
  /** The coordinator's generation; -1 while out of the group. */
  wireGeneration: number
  /** Names one assignment of this session. Never decreases, also when the group starts anew. */
  generation: number
  joined: boolean
  rejoinRequested: boolean
  /** True when another round is known to follow. */
  incomplete: boolean
  /** True when a member of the group is eager, this one or another. */
  hasEager: boolean
  /** When the last answered heartbeat was sent, or the last join was answered, by the monotonic clock: the coordinator expires the member from then on. */
  confirmedAt: number
  /** While a join is out, the coordinator waits for the other members instead. */
  joining: boolean
}

/** Heartbeat interval while another round is known to follow. */
const followUpMillis = 200

/** Heartbeat interval beside eager members at most: in a rebalance they stand still until the last member has noticed. */
const eagerMillis = 1_000

const rebalanceInProgress = 27

/**
 * The group has another generation, or is about to: the member joins it under its id, and keeps its partitions until it is assigned others. A group that leaves the consumer protocol
 * (KIP-848) answers `ILLEGAL_GENERATION` to a member that has not taken the last assignment yet.
 */
const movedOn = new Set(["REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"])

/** The coordinator has answered; fails when the answer is an error. */
const answered = (member: Member, errorCode: number): Effect.Effect<void, ClientFailure> =>
  Effect.andThen(check(errorCode), noteContact(member))

const setMemberId = (member: Member, memberId: string): void => {
  member.memberId = memberId
  member.lastMemberId = memberId
}

const join = Effect.fnUntraced(function* (member: Member) {
  const { cluster, options, ownership } = member
  if (member.isEager && ownership.size > 0) yield* giveUp(member)
  const { wireGeneration } = member
  member.rejoinRequested = false
  member.joining = true
  member.wake.closeUnsafe()
  const { ask } = member.coordinator
  const claim = { owned: ownership.all(), generation: wireGeneration }
  const answer = yield* ask((broker) =>
    joinGroup(broker, options, member.memberId, claim, (id) => setMemberId(member, id))
  )
  yield* Effect.catchIf(
    answered(member, answer.errorCode),
    ({ type }) => type === "INCONSISTENT_GROUP_PROTOCOL",
    () => refused(cluster, options)
  )
  const { memberId, leaderId, members, generationId } = answer
  setMemberId(member, memberId)
  const isLeader = leaderId === memberId && members.length > 0
  const assignments = isLeader ? yield* decideAssignments(cluster, options.groupId, answer) : []
  const identity = { memberId, generation: generationId }
  const synced = yield* ask((broker) => syncGroup(broker, options, identity, assignments))
  yield* answered(member, synced.errorCode)
  member.wireGeneration = generationId
  member.generation = Math.max(generationId, member.generation + 1)
  member.joined = true
  member.confirmedAt = performance.now()
  const assignment = decodeAssignment(synced.memberAssignment)
  if (assignment === undefined) return yield* unreadable(cluster, options, { leaderId, memberId })
  yield* checkTopics(cluster, options, { leaderId, memberId }, assignment.partitions)
  member.incomplete = assignment.incomplete
  member.hasEager = assignment.hasEager || member.isEager
  member.listener.assigned(member.generation, assignment.partitions)
  if (wireGeneration === -1 && isBeforeUnits(options, answer.groupProtocol, assignment)) member.rejoinRequested = true
})

/**
 * Whether a static member that came back got what a leader decided that did not know its units. The coordinator rebalances nothing then, and when the group's last member
 * comes back so, nobody else would ever bring the units together.
 */
const isBeforeUnits = (
  { groupInstanceId, copartitionedTopics }: MembershipOptions,
  groupProtocol: string,
  { byUnits }: Assignment
): boolean =>
  groupInstanceId !== null && copartitionedTopics.length > 0 && !byUnits && Adapter.honoursUnits(groupProtocol)

/** Commits and gives up everything before an eager join. Handlers may take as long as the coordinator waits, so heartbeats go on: their answer is that the group rebalances. */
const giveUp = (member: Member): Effect.Effect<void, ClientFailure> => {
  const stayKnown = beat(member).pipe(
    Effect.catchIf(
      ({ type }) => movedOn.has(type),
      () => noteContact(member)
    ),
    Effect.catchIf(isTransient, () => Effect.sync(member.coordinator.forget)),
    Effect.delay(eagerMillis)
  )
  return Effect.raceFirst(member.listener.giveUp, Effect.forever(stayKnown))
}

const dropMembership = (member: Member): Effect.Effect<void> =>
  Effect.sync(() => {
    member.memberId = ""
    member.wireGeneration = -1
    member.joined = false
    member.listener.lost()
  })

/** Recovers from failures that joining again cures. Fails with all others, and when the coordinator was silent for a session timeout. */
const recover = Effect.fnUntraced(function* (member: Member, failed: ClientFailure) {
  if (movedOn.has(failed.type)) return
  if (failed.type === "UNKNOWN_MEMBER_ID") return yield* dropMembership(member)
  if (!isTransient(failed)) {
    yield* dropMembership(member)
    return yield* Effect.fail(failed)
  }
  // Where the cluster names another coordinator, that one knows the member, and waits a whole session timeout for its next heartbeat.
  const sessions = failed.type === "NOT_COORDINATOR" ? 2 : 1
  yield* awaitCoordinator(member, failed, sessions * member.options.sessionTimeoutMillis, dropMembership(member))
})

/** One heartbeat. Fails when the member has to join again. */
const beat = Effect.fnUntraced(function* (member: Member) {
  const { cluster, coordinator, options } = member
  const identity = { memberId: member.memberId, generation: member.wireGeneration }
  const sentAt = performance.now()
  const { errorCode } = yield* coordinator.ask((broker) =>
    cluster.watch(broker, sendHeartbeat(broker, options, identity))
  )
  // A member that has to join again is still one.
  if (errorCode === 0 || errorCode === rebalanceInProgress) member.confirmedAt = sentAt
  yield* answered(member, errorCode)
})

/** One heartbeat after an interval; none when the member is to join again before. */
const heartbeat = Effect.fnUntraced(function* (member: Member) {
  const { options, wake } = member
  const limit = member.incomplete ? followUpMillis : member.hasEager ? eagerMillis : options.heartbeatIntervalMillis
  yield* Effect.timeoutOption(wake.await, Math.min(limit, options.heartbeatIntervalMillis))
  if (member.rejoinRequested) return
  wake.closeUnsafe()
  yield* beat(member)
})

/** Sends heartbeats until the member is to join again. */
const stay = (member: Member): Effect.Effect<void, ClientFailure> =>
  Effect.suspend(() =>
    member.rejoinRequested
      ? Effect.void
      : Effect.matchEffect(heartbeat(member), {
          onSuccess: () => stay(member),
          onFailure: (failed) =>
            isTransient(failed) ? Effect.andThen(recover(member, failed), stay(member)) : Effect.fail(failed)
        })
  )

/** `memberId` is the id that a static member had in a session that failed; empty for a new member. */
export const makeClassicMembership = (
  cluster: Cluster,
  options: MembershipOptions,
  ownership: Ownership,
  memberId: string,
  listener: MembershipListener
): Membership => {
  const member: Member = {
    cluster,
    options,
    ownership,
    listener,
    coordinator: coordinatorCache(cluster, options.groupId),
    isEager: Adapter.isEager(options.partitionAssignmentStrategy),
    wake: Latch.makeUnsafe(false),
    memberId,
    lastMemberId: memberId,
    wireGeneration: -1,
    generation: 0,
    joined: false,
    rejoinRequested: false,
    incomplete: false,
    hasEager: false,
    lastContactMillis: 0,
    failures: 0,
    confirmedAt: performance.now(),
    joining: false
  }
  const joined = Effect.ensuring(
    join(member),
    Effect.sync(() => (member.joining = false))
  )
  // Without a member id the coordinator would give the name of a static member to whoever asks last, such as a process that stops beside its successor.
  const belong = Effect.suspend(() =>
    member.memberId !== "" || options.mayJoin() ? Effect.andThen(joined, stay(member)) : Effect.never
  )
  const round = Effect.catch(belong, (failed) => recover(member, failed))
  return {
    run: Effect.andThen(noteContact(member), Effect.forever(round)),
    requestRejoin: () => {
      member.rejoinRequested = true
      member.wake.openUnsafe()
    },
    heartbeatNow: () => void member.wake.openUnsafe(),
    memberId: () => member.lastMemberId,
    isUnconfirmed: () => {
      const { sessionTimeoutMillis, rebalanceTimeoutMillis } = options
      const limitMillis = member.joining ? sessionTimeoutMillis + rebalanceTimeoutMillis : sessionTimeoutMillis
      return performance.now() - member.confirmedAt >= limitMillis
    },
    identity: () => (member.joined ? { memberId: member.memberId, generation: member.wireGeneration } : undefined),
    sendCommit: (broker, identity, offsets) => sendCommit(broker, options.groupId, identity, offsets),
    leaving: () => {
      const { lastMemberId } = member
      const stays = lastMemberId === "" || options.groupInstanceId !== null
      return stays ? undefined : (connected) => leaveGroup(connected, options.groupId, lastMemberId)
    }
  }
}
