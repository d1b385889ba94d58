/**
 * Who gets which partition: sticky, balanced, and cooperative (KIP-429).
 *
 * Every member says what it owns. A partition that should move is first given to nobody; its owner sees that it is missing, lets
 * go of it and joins again, and in that next round, claimed by nobody, it goes to its new owner. All others go on meanwhile.
 */
import { Assignor, ConsumerRecord } from "@eventbus/core"

/** What a member brings along when it joins. */
export interface Member {
  readonly memberId: string
  readonly topics: ReadonlyArray<string>
  readonly owned: ReadonlyArray<ConsumerRecord.TopicPartition>
  /** The generation in which `owned` was valid; of two members that claim one partition the older claim is void. */
  readonly generation: number
}

/** The outcome of one round. */
export interface Round {
  readonly assignments: ReadonlyMap<string, ReadonlyArray<ConsumerRecord.TopicPartition>>
  /** True when partitions are held back for their next owner: another round will follow. */
  readonly incomplete: boolean
}

const keyOf = ({ topic, partition }: ConsumerRecord.TopicPartition) => ConsumerRecord.partitionKey(topic, partition)

const compareMembers = (a: Member, b: Member) => (a.memberId < b.memberId ? -1 : 1)

/** The partitions to hand out: of every topic that somebody subscribes to, so far as it exists. */
const allPartitions = (members: ReadonlyArray<Member>, partitionCounts: ReadonlyMap<string, number>) => {
  const topics = [...new Set(members.flatMap(({ topics }) => topics))].sort()
  return topics.flatMap((topic) =>
    Array.from({ length: partitionCounts.get(topic) ?? 0 }, (_, partition) => ({ topic, partition }))
  )
}

/** For each partition the member whose claim counts. */
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

/** The assignment that the group is heading for: owners keep what they have as long as that is balanced. */
const target = (
  members: ReadonlyArray<Member>,
  partitions: ReadonlyArray<ConsumerRecord.TopicPartition>,
  claims: ReadonlyMap<string, Member>
): ReadonlyMap<string, ReadonlyArray<ConsumerRecord.TopicPartition>> => {
  const claimsOf = Map.groupBy(claims, ([, member]) => member.memberId)
  const owners = Assignor.assign(
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

/** Decides one round. Depends on nothing but its arguments, so that every leader decides the same. */
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
