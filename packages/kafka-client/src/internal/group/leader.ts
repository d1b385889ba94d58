/** The leader of a group decides the assignments of all members in each round. */
import { Adapter, LogLine } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { Cluster } from "../connection/cluster.ts"
import type { TopicMetadata } from "../protocol/apis.ts"
import { assign } from "./assigner.ts"
import { type DecodedMember, decodeMember, encodeAssignment } from "./memberProtocol.ts"

/** Time for a node to learn of a new topic. */
const metadataLag = "500 millis"

/** The metadata of every topic. A topic that is owned but missing is looked up twice: a node may lag behind. */
const lookUpTopics = Effect.fnUntraced(function* (
  cluster: Cluster,
  topics: ReadonlyArray<string>,
  owned: ReadonlySet<string>
) {
  const first = yield* cluster.metadata(topics)
  if (![...owned].some((topic) => !first.get(topic)?.partitionMetadata.length)) return first
  yield* Effect.sleep(metadataLag)
  return yield* cluster.metadata(topics)
})

const topicAuthorizationFailed = 29

/** A topic that this member may not describe has no partitions for the whole group, and no other member would say so. */
const reportHiddenTopics = (
  groupId: string,
  group: ReadonlyArray<DecodedMember>,
  metadata: ReadonlyMap<string, TopicMetadata>
): Effect.Effect<void> => {
  const hidden = Array.from(metadata).filter(([, { topicErrorCode }]) => topicErrorCode === topicAuthorizationFailed)
  return Effect.forEach(
    hidden,
    ([topic]) => {
      const readers = group.filter(({ topics }) => topics.includes(topic)).map(({ memberId }) => `'${memberId}'`)
      return LogLine.warning(
        `Nobody gets the partitions of topic '${topic}' in group '${groupId}': this member leads the group and may not describe the topic, which ${readers.join(", ")} ${readers.length === 1 ? "reads" : "read"}. Grant its user Describe on the topic.`
      )
    },
    { discard: true }
  )
}

/** The members, of whatever client. One that cannot be read gets no partitions, since it may keep what it owns. */
const decodeMembers = Effect.fnUntraced(function* (groupId: string, members: ReadonlyArray<JoinedMember>) {
  const group: Array<DecodedMember> = []
  for (const { memberId, memberMetadata } of members) {
    const member = decodeMember(memberId, memberMetadata)
    if (member === undefined) {
      yield* LogLine.warning(
        `Member '${memberId}' of group '${groupId}' is another client, and its subscription cannot be read: it gets no partitions. Stop it, or give it a group of its own.`
      )
    }
    group.push(
      member ?? {
        memberId,
        topics: [],
        owned: [],
        generation: -1,
        copartitionedTopics: [],
        isConnector: false,
        readsUserData: false,
        isEager: false
      }
    )
  }
  return group
})

interface JoinedMember {
  readonly memberId: string
  readonly memberMetadata: Buffer
}

/** The group, as the coordinator describes it to the leader of a generation. */
interface JoinedGroup {
  readonly groupProtocol: string
  readonly members: ReadonlyArray<JoinedMember>
}

/** Encoded assignments of all members: of all topics that one of them reads, whether this member reads them or not. */
export const decideAssignments = Effect.fnUntraced(function* (
  cluster: Cluster,
  groupId: string,
  { groupProtocol, members }: JoinedGroup
) {
  const decoded = yield* decodeMembers(groupId, members)
  const group = Adapter.honoursUnits(groupProtocol)
    ? decoded
    : decoded.map((member) => ({ ...member, copartitionedTopics: [] }))
  const subscribed = [...new Set(group.flatMap((member) => member.topics))]
  const owned = new Set(group.flatMap((member) => member.owned.map(({ topic }) => topic)))
  const metadata = yield* lookUpTopics(cluster, subscribed, owned)
  yield* reportHiddenTopics(groupId, group, metadata)
  const counts = new Map(Array.from(metadata, ([topic, { partitionMetadata }]) => [topic, partitionMetadata.length]))
  const round = assign(group, counts)
  const ofGroup = {
    incomplete: round.incomplete,
    hasEager: group.some(({ isEager }) => isEager),
    byUnits: group.some(({ copartitionedTopics }) => copartitionedTopics.length > 0)
  }
  return group.map((member) => {
    const partitions = round.assignments.get(member.memberId) ?? []
    const memberAssignment = encodeAssignment({ partitions, ...ofGroup }, member)
    return { memberId: member.memberId, memberAssignment }
  })
})
