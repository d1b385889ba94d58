/**
 * Assigns partitions to the members of a group: sticky, balanced and cooperative (KIP-429).
 *
 * Every member claims what it owns. A partition that should move is first assigned to nobody. Its owner sees that it is missing, releases it and
 * joins again. In that next round nobody claims the partition, and its new owner gets it. All other partitions are fetched meanwhile. Partitions that go together are held
 * back together.
 */
import { Adapter, ConsumerRecord } from "@eventbus/core"

/** A member, with its claims, as it says when it joins. */
export interface Member {
  readonly memberId: string
  readonly topics: ReadonlyArray<string>
  readonly owned: ReadonlyArray<ConsumerRecord.TopicPartition>
  /** The generation in which `owned` was valid. When two members claim one partition, the claim of the older generation is void. */
  readonly generation: number
  /** Topics that go together, by the lists of this member. */
  readonly copartitionedTopics: ReadonlyArray<ReadonlyArray<string>>
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

/** Decides one round. The result depends on the arguments only, so every leader decides the same. */
export const assign = (group: ReadonlyArray<Member>, partitionCounts: ReadonlyMap<string, number>): Round => {
  const members = [...group].sort(compareMembers)
  const partitions = allPartitions(members, partitionCounts)
  const claims = validClaims(members)
  const claimsOf = Map.groupBy(claims, ([, member]) => member.memberId)
  const candidates = members.map(({ memberId, topics, copartitionedTopics }) => ({
    ...{ memberId, topics: new Set(topics), copartitionedTopics },
    holds: new Set(claimsOf.get(memberId)?.map(([key]) => key))
  }))
  // The assignment that the group moves towards: owners keep their partitions as long as the result is balanced.
  const owners = Adapter.assign(candidates, partitions)
  const holders = new Map(Array.from(claims, ([key, { memberId }]) => [key, memberId]))
  const granted = Adapter.grantable(candidates, partitions, owners, holders)
  const byOwner = Map.groupBy(granted, (partition) => owners.get(keyOf(partition)))
  return {
    assignments: new Map(members.map(({ memberId }) => [memberId, byOwner.get(memberId) ?? []])),
    incomplete: granted.length < owners.size
  }
}
