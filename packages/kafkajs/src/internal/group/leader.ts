/** The leader of a group decides the assignments of all members in each round. */
import { Effect } from "effect"
import type { Cluster } from "../connection/cluster.ts"
import { assign } from "./assigner.ts"
import { decodeMember, encodeAssignment } from "./memberProtocol.ts"

/** Time for a node to learn of a new topic. */
const metadataLag = "500 millis"

/** The number of partitions of every topic. A topic that is owned but missing is looked up twice: a node may lag behind. */
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
  yield* Effect.sleep(metadataLag)
  return yield* count
})

/** Encoded assignments of all members. */
export const decideAssignments = Effect.fnUntraced(function* (
  cluster: Cluster,
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
