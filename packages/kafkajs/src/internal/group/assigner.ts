/**
 * Assigns partitions to the members of a group: sticky, balanced and cooperative (KIP-429).
 *
 * Every member claims what it owns. A partition that should move is first assigned to nobody. Its owner sees that it is missing, releases it and
 * joins again. In that next round nobody claims the partition, and its new owner gets it. All other partitions are fetched meanwhile.
 */
import { Adapter, ConsumerRecord } from "@eventbus/core"

/** A member, with its claims, as it says when it joins. */
export interface Member {
  readonly memberId: string
  readonly topics: ReadonlyArray<string>
  readonly owned: ReadonlyArray<ConsumerRecord.TopicPartition>
  /** The generation in which `owned` was valid. When two members claim one partition, the claim of the older generation is void. */
  readonly generation: number
}

/** The outcome of one round. */
export interface Round {
  readonly assignments: ReadonlyMap<string, ReadonlyArray<ConsumerRecord.TopicPartition>>
  /** True when partitions are held back for their next owner; another round will follow. */
  readonly incomplete: boolean
}

const keyOf = ({ topic, partition }: ConsumerRecord.TopicPartition) => ConsumerRecord.partitionKey(topic, partition)

const compareMembers = (a: Member, b: Member) => (a.memberId < b.memberId ? -1 : 1)

/** All partitions to assign: those of every topic that a member subscribes to and that exists. */
const allPartitions = (members: ReadonlyArray<Member>, partitionCounts: ReadonlyMap<string, number>) => {
  const topics = [...new Set(members.flatMap(({ topics }) => topics))].sort()
  return topics.flatMap((topic) =>
    Array.from({ length: partitionCounts.get(topic) ?? 0 }, (_, partition) => ({ topic, partition }))
  )
}

/** The member with the valid claim, by partition key. */
const validClaims = (members: ReadonlyArray<Member>): ReadonlyMap<string, Member> => {
  const claims = new Map<string, Member>()
  for (const member of members) {
    const subscribed = new Set(member.topics)
    for (const partition of member.owned) {
      const rival = claims.get(keyOf(partition))
      if (subscribed.has(partition.topic) && (rival === undefined || rival.generation < member.generation)) {
        claims.set(keyOf(partition), member)
      }
    }
  }
  return claims
}

/** The assignment that the group moves towards: owners keep their partitions as long as the result is balanced. */
const target = (
  members: ReadonlyArray<Member>,
  partitions: ReadonlyArray<ConsumerRecord.TopicPartition>,
  claims: ReadonlyMap<string, Member>
): ReadonlyMap<string, ReadonlyArray<ConsumerRecord.TopicPartition>> => {
  const claimsOf = Map.groupBy(claims, ([, member]) => member.memberId)
  const owners = Adapter.assign(
    members.map(({ memberId, topics }) => ({
      memberId,
      topics: new Set(topics),
      holds: new Set(claimsOf.get(memberId)?.map(([key]) => key))
    })),
    partitions
  )
  const byOwner = Map.groupBy(partitions, (partition) => owners.get(keyOf(partition)))
  return new Map(members.map(({ memberId }) => [memberId, byOwner.get(memberId) ?? []]))
}

/** Decides one round. The result depends on the arguments only, so every leader decides the same. */
export const assign = (group: ReadonlyArray<Member>, partitionCounts: ReadonlyMap<string, number>): Round => {
  const members = [...group].sort(compareMembers)
  const claims = validClaims(members)
  const loads = target(members, allPartitions(members, partitionCounts), claims)
  let incomplete = false
  const assignments = new Map<string, ReadonlyArray<ConsumerRecord.TopicPartition>>()
  for (const [memberId, partitions] of loads) {
    const now = partitions.filter((partition) => {
      const owner = claims.get(keyOf(partition))
      return owner === undefined || owner.memberId === memberId
    })
    if (now.length < partitions.length) incomplete = true
    assignments.set(memberId, now)
  }
  return { assignments, incomplete }
}
