/**
 * A member of a consumer group in Kafka's classic group protocol: joins, syncs, heartbeats, joins again, leaves.
 *
 * The coordinator holds a JoinGroup back until all members have joined, and answers one request of a connection at a time. The
 * member therefore has a cluster (connections) of its own: commits and fetches never wait behind a rebalance.
 */
import { Clock, Effect, Latch } from "effect"
import type { Cluster } from "../connection/cluster.ts"
import * as Patience from "../connection/retryBackoff.ts"
import { type ClientFailure, check, isCoordinatorFailure, Local } from "../wire/errors.ts"
import type { KafkaBroker } from "../wire/kafkajsInternals.ts"
import { call } from "../wire/wire.ts"
import { assign } from "./assigner.ts"
import {
  type Assignment,
  decodeAssignment,
  decodeMember,
  encodeAssignment,
  encodeMember,
  protocolName
} from "./memberProtocol.ts"
import type { Ownership } from "./ownership.ts"

export interface MembershipOptions {
  readonly groupId: string
  readonly groupInstanceId: string | null
  readonly topics: ReadonlyArray<string>
  readonly sessionTimeoutMillis: number
  readonly rebalanceTimeoutMillis: number
  readonly heartbeatIntervalMillis: number
}

/** What the session does when its membership changes. Called synchronously, must not throw. */
export interface MembershipListener {
  /** The partitions of a new generation. */
  readonly assigned: (generation: number, partitions: Assignment["partitions"]) => void
  /** The member is out of the group: nothing of what it had is its own any more. */
  readonly lost: () => void
}

export interface Membership {
  /** Ends only with a failure that joining again does not cure. */
  readonly run: Effect.Effect<never, ClientFailure>
  /** Joins again soon: what is owned, or there is to own, has changed. */
  readonly rejoin: () => void
  /** Sends the next heartbeat now: a commit has hinted that the group is changing. */
  readonly hurry: () => void
  /** The last id that the coordinator gave, also when the member is out of the group by now; empty before the first. */
  readonly memberId: () => string
  /** Whose commits the coordinator accepts at the moment. */
  readonly identity: () => { readonly memberId: string; readonly generation: number } | undefined
}

/** How often to look for the round that is known to follow. */
const followUpMillis = 200

const outOfGroup = new Set(["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"])

/** How many partitions the topics of all members have. A topic that is owned but missing is looked up twice: a node may lag. */
const countPartitions = Effect.fnUntraced(function* (
  cluster: Cluster,
  topics: ReadonlyArray<string>,
  owned: ReadonlySet<string>
) {
  const count = Effect.map(
    cluster.metadata(topics),
    (metadata) => new Map([...metadata].map(([topic, { partitionMetadata }]) => [topic, partitionMetadata.length]))
  )
  const first = yield* count
  if (![...owned].some((topic) => !first.get(topic))) return first
  yield* Effect.sleep("500 millis")
  return yield* count
})

export const makeMembership = (
  cluster: Cluster,
  options: MembershipOptions,
  ownership: Ownership,
  listener: MembershipListener
): Membership => {
  const { groupId, groupInstanceId, topics } = options
  const wake = Latch.makeUnsafe(false)
  let coordinator: KafkaBroker | undefined
  let memberId = ""
  let lastMemberId = ""
  let wireGeneration = -1
  /** Never goes back, also when the group starts anew: a generation names one assignment of this session. */
  let generation = 0
  let joined = false
  let rejoinWanted = false
  let incomplete = false
  let lastContact = 0
  let unanswered = 0

  const contact = Effect.map(Clock.currentTimeMillis, (now) => {
    lastContact = now
    unanswered = 0
  })
  const answered = (errorCode: number) => Effect.andThen(check(errorCode), contact)

  const findCoordinator = Effect.suspend(() =>
    coordinator?.isConnected()
      ? Effect.succeed(coordinator)
      : Effect.tap(cluster.coordinator("group", groupId), (found) =>
          Effect.sync(() => {
            coordinator = found
          })
        )
  )

  const decide = Effect.fnUntraced(function* (
    members: ReadonlyArray<{ readonly memberId: string; readonly memberMetadata: Buffer }>
  ) {
    const group = members.map((member) => decodeMember(member.memberId, member.memberMetadata))
    const subscribed = [...new Set(group.flatMap((member) => member.topics))]
    const owned = new Set(group.flatMap((member) => member.owned.map(({ topic }) => topic)))
    const round = assign(group, yield* countPartitions(cluster, subscribed, owned))
    return [...round.assignments].map(([memberId, partitions]) => ({
      memberId,
      memberAssignment: encodeAssignment({ partitions, incomplete: round.incomplete })
    }))
  })

  const sendJoin = (broker: KafkaBroker) =>
    call(broker, "JoinGroup", {
      groupId,
      sessionTimeout: options.sessionTimeoutMillis,
      rebalanceTimeout: options.rebalanceTimeoutMillis,
      memberId,
      groupInstanceId,
      protocolType: "consumer",
      groupProtocols: [
        { name: protocolName, metadata: encodeMember({ topics, owned: ownership.all(), generation: wireGeneration }) }
      ]
    })

  const join = Effect.gen(function* () {
    rejoinWanted = false
    wake.closeUnsafe()
    const broker = yield* findCoordinator
    let answer = yield* sendJoin(broker)
    if (answer.memberId !== "" && answer.errorCode === memberIdRequired) {
      memberId = answer.memberId
      lastMemberId = memberId
      answer = yield* sendJoin(broker)
    }
    yield* answered(answer.errorCode)
    memberId = answer.memberId
    lastMemberId = memberId
    const groupAssignment =
      answer.leaderId === memberId && answer.members.length > 0 ? yield* decide(answer.members) : []
    const synced = yield* call(broker, "SyncGroup", {
      groupId,
      generationId: answer.generationId,
      memberId,
      groupInstanceId,
      groupAssignment
    })
    yield* answered(synced.errorCode)
    wireGeneration = answer.generationId
    generation = Math.max(answer.generationId, generation + 1)
    joined = true
    const assignment = decodeAssignment(synced.memberAssignment)
    incomplete = assignment.incomplete
    listener.assigned(generation, assignment.partitions)
  })

  const leaveBehind = Effect.sync(() => {
    memberId = ""
    wireGeneration = -1
    joined = false
    listener.lost()
  })

  /** Recovers from what joining again cures; fails with the rest, and when the coordinator was silent for a session timeout. */
  const recover = Effect.fnUntraced(function* (failed: ClientFailure) {
    if (failed.type === "REBALANCE_IN_PROGRESS") return
    if (outOfGroup.has(failed.type)) return yield* leaveBehind
    if (!isCoordinatorFailure(failed.type) && failed.type !== Local.timeout) {
      yield* leaveBehind
      return yield* Effect.fail(failed)
    }
    coordinator = undefined
    if ((yield* Clock.currentTimeMillis) - lastContact > options.sessionTimeoutMillis) {
      yield* leaveBehind
      return yield* Effect.fail(failed)
    }
    yield* Effect.sleep(Patience.delayMillis(unanswered++))
  })

  /** One heartbeat after an interval, or none when joining again is wanted before. */
  const beat = Effect.gen(function* () {
    const interval = incomplete
      ? Math.min(followUpMillis, options.heartbeatIntervalMillis)
      : options.heartbeatIntervalMillis
    yield* Effect.timeoutOption(wake.await, interval)
    if (rejoinWanted) return
    wake.closeUnsafe()
    const broker = yield* findCoordinator
    const answer = yield* call(broker, "Heartbeat", {
      groupId,
      groupGenerationId: wireGeneration,
      memberId,
      groupInstanceId
    })
    yield* answered(answer.errorCode)
  })

  const stay: Effect.Effect<void, ClientFailure> = Effect.suspend(() =>
    rejoinWanted
      ? Effect.void
      : Effect.matchEffect(beat, {
          onSuccess: () => stay,
          onFailure: (failed) =>
            isCoordinatorFailure(failed.type) || failed.type === Local.timeout
              ? Effect.andThen(recover(failed), stay)
              : Effect.fail(failed)
        })
  )

  const run = Effect.andThen(contact, Effect.forever(Effect.andThen(join, stay).pipe(Effect.catch(recover))))

  return {
    run,
    rejoin: () => {
      rejoinWanted = true
      wake.openUnsafe()
    },
    hurry: () => void wake.openUnsafe(),
    memberId: () => lastMemberId,
    identity: () => (joined ? { memberId, generation: wireGeneration } : undefined)
  }
}

const memberIdRequired = 79

/** Leaves at once, over any connection: the member's own may be waiting for a JoinGroup. */
export const leave = Effect.fnUntraced(function* (cluster: Cluster, groupId: string, memberId: string) {
  const broker = yield* cluster.coordinator("group", groupId)
  yield* check((yield* call(broker, "LeaveGroup", { groupId, memberId })).errorCode)
})
