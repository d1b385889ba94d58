/** The messages between the members of a group, which the coordinator passes on as bytes of Kafka's consumer protocol. */
import type { ConsumerRecord } from "@eventbus/core"
import { Option, Schema } from "effect"
import { AssignerProtocol } from "kafkajs"
import type { Member } from "./assigner.ts"

/** The name of the assignment protocol. All members of a group must use the same one. */
export const protocolName = "eventbus-cooperative-sticky"

// Pairs instead of an object keyed by topic: `__proto__` is a legal topic name.
const PartitionsByTopic = Schema.Array(Schema.Tuple([Schema.String, Schema.Array(Schema.Int)]))
const Claim = Schema.fromJsonString(Schema.Struct({ generation: Schema.Int, owned: PartitionsByTopic }))
const AssignmentBody = Schema.fromJsonString(
  Schema.Struct({ incomplete: Schema.Boolean, partitions: PartitionsByTopic })
)
const encodeClaim = Schema.encodeSync(Claim)
const decodeClaim = Schema.decodeUnknownOption(Claim)
const encodeAssignmentBody = Schema.encodeSync(AssignmentBody)
const decodeAssignmentBody = Schema.decodeUnknownOption(AssignmentBody)

const grouped = (partitions: ReadonlyArray<ConsumerRecord.TopicPartition>) => {
  const byTopic = new Map<string, Array<number>>()
  for (const { topic, partition } of partitions) {
    const list = byTopic.get(topic)
    if (list === undefined) byTopic.set(topic, [partition])
    else list.push(partition)
  }
  return [...byTopic]
}

const flat = (
  pairs: ReadonlyArray<readonly [topic: string, partitions: ReadonlyArray<number>]>
): ReadonlyArray<ConsumerRecord.TopicPartition> =>
  pairs.flatMap(([topic, partitions]) => partitions.map((partition) => ({ topic, partition })))

export const encodeMember = (member: Omit<Member, "memberId">): Buffer =>
  AssignerProtocol.MemberMetadata.encode({
    version: 0,
    topics: [...member.topics],
    userData: Buffer.from(encodeClaim({ generation: member.generation, owned: grouped(member.owned) }))
  })

/** A member whose claim cannot be read counts as owning nothing. It will see its partitions missing, and release them. */
export const decodeMember = (memberId: string, metadata: Buffer): Member => {
  const decoded = AssignerProtocol.MemberMetadata.decode(metadata)
  const claim = Option.getOrElse(decodeClaim(decoded?.userData?.toString() ?? ""), () => ({
    generation: -1,
    owned: []
  }))
  return { memberId, topics: decoded?.topics ?? [], owned: flat(claim.owned), generation: claim.generation }
}

/** The partitions of a member in this round. */
export interface Assignment {
  readonly partitions: ReadonlyArray<ConsumerRecord.TopicPartition>
  /** True when another round will follow. */
  readonly incomplete: boolean
}

export const encodeAssignment = ({ partitions, incomplete }: Assignment): Buffer =>
  AssignerProtocol.MemberAssignment.encode({
    version: 0,
    // For tools that show assignments. This package reads `userData`.
    assignment: Object.fromEntries(grouped(partitions)),
    userData: Buffer.from(encodeAssignmentBody({ incomplete, partitions: grouped(partitions) }))
  })

/**
 * The assignment of this member. One without our `userData` is another client's: its partitions are used all the same (ruling 80). Undefined for bytes that are not of
 * Kafka's consumer protocol; none at all mean no partitions.
 */
export const decodeAssignment = (bytes: Buffer): Assignment | undefined => {
  if (bytes.length === 0) return { partitions: [], incomplete: false }
  const decoded = decodeStandard(bytes)
  if (decoded === undefined) return undefined
  return Option.match(decodeAssignmentBody(decoded.userData?.toString() ?? ""), {
    onNone: () => ({ partitions: flat(Object.entries(decoded.assignment)), incomplete: false }),
    onSome: ({ incomplete, partitions }) => ({ incomplete, partitions: flat(partitions) })
  })
}

const decodeStandard = (bytes: Buffer) => {
  try {
    return AssignerProtocol.MemberAssignment.decode(bytes) ?? undefined
  } catch {
    return undefined
  }
}

/** The partitions of an assignment by any client, for display. */
export const assignmentOf = (bytes: Buffer): ReadonlyArray<ConsumerRecord.TopicPartition> => {
  if (bytes.length === 0) return []
  const decoded = AssignerProtocol.MemberAssignment.decode(bytes)
  return Object.entries(decoded?.assignment ?? {}).flatMap(([topic, partitions]) =>
    partitions.map((partition) => ({ topic, partition }))
  )
}
