/** Failures that come from other clients in the group. Their texts name those clients, and what to do (ruling 80). */
import { Adapter, type Broker, type ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { type ClientFailure, failure } from "../../ClientFailure.ts"
import type { Cluster } from "../connection/cluster.ts"
import { describeGroup } from "./groupDescription.ts"
import type { MembershipOptions } from "./memberRequests.ts"

type Group = Pick<MembershipOptions, "groupId" | "partitionAssignmentStrategy">

/** A group has no protocol while it rebalances, so it is asked again, 12 times in 3 seconds. */
const again = Schedule.max([Schedule.spaced("250 millis"), Schedule.recurs(12)])

/** The group as its coordinator knows it. Without an answer it has no members. */
const describe = (cluster: Cluster, groupId: string): Effect.Effect<Broker.GroupDescription> =>
  cluster
    .askCoordinator("group", groupId, (broker) => describeGroup(broker, groupId))
    .pipe(
      Effect.orElseSucceed(
        (): Broker.GroupDescription => ({ groupId, type: "classic", state: "Dead", protocol: "", members: [] })
      )
    )

/** The members of the group list none of this member's assignment protocols. */
export const refused = (
  cluster: Cluster,
  { groupId, partitionAssignmentStrategy }: Group
): Effect.Effect<never, ClientFailure> =>
  describe(cluster, groupId).pipe(
    Effect.repeat({ schedule: again, while: ({ members, protocol }) => members.length > 0 && protocol === "" }),
    Effect.flatMap((group) =>
      Effect.fail(failure("INCONSISTENT_GROUP_PROTOCOL", Adapter.refusalOf(partitionAssignmentStrategy, group)))
    )
  )

interface Ids {
  readonly leaderId: string
  readonly memberId: string
}

const remedy =
  "Let this binding read the same topics as the other client, stop the other client, or give this binding a group of its own, which begins at autoOffsetReset unless you copy the committed offsets (docs/guide/move-from-kafkajs.md#your-service-has-a-retry-topic-of-its-own)"

/** An idle member would be a silent loss of progress: nobody else consumes what it was given. */
const foreignAssignment = Effect.fnUntraced(function* (
  cluster: Cluster,
  { groupId }: Group,
  { leaderId, memberId }: Ids,
  problem: string
): Effect.fn.Return<never, ClientFailure> {
  const group = yield* describe(cluster, groupId)
  const leader = group.members.find(({ memberId }) => memberId === leaderId)
  const assigner =
    leaderId === ""
      ? "the broker"
      : `member '${leaderId}'${leader === undefined ? "" : ` of client '${leader.clientId}'`}`
  const others = group.members.filter((member) => member.memberId !== memberId)
  const besides = Adapter.clientsOf({ members: others }) || "no members"
  const detail = `${assigner} assigns the partitions of group '${groupId}', and ${problem}. Besides this member the group has ${besides}. ${remedy}`
  return yield* Effect.fail(failure("FOREIGN_ASSIGNMENT", detail))
})

/** The assignment is not of Kafka's consumer protocol. */
export const unreadable = (cluster: Cluster, group: Group, ids: Ids): Effect.Effect<never, ClientFailure> =>
  foreignAssignment(cluster, group, ids, "its assignment for this member cannot be read")

/** A kafkajs leader gives its own topics to every member. The others get them back when this member leaves. */
export const checkTopics = (
  cluster: Cluster,
  group: Group & Pick<MembershipOptions, "topics">,
  ids: Ids,
  partitions: ReadonlyArray<ConsumerRecord.TopicPartition>
): Effect.Effect<void, ClientFailure> => {
  const strange = partitions.flatMap(({ topic }) => (group.topics.includes(topic) ? [] : [topic]))
  if (strange.length === 0) return Effect.void
  const names = Array.from(new Set(strange), (topic) => `'${topic}'`).join(", ")
  return foreignAssignment(cluster, group, ids, `this member does not read ${names}, of which it was given partitions`)
}
