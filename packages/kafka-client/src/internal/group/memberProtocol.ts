/** The messages between the members of a group: Kafka's consumer protocol, with what members of this client tell each other in its `userData`. */
import type { ConsumerRecord } from "@eventbus/core"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Member } from "./assigner.ts"
import {
  decodeGivenPartitions,
  decodeSubscription,
  encodeGivenPartitions,
  encodeSubscription,
  groupedByTopic
} from "./consumerProtocol.ts"

const PartitionsByTopic = Schema.Array(Schema.Tuple([Schema.String, Schema.Array(Schema.Int)]))
const Claim = Schema.fromJsonString(
  Schema.Struct({
    generation: Schema.Int,
    owned: PartitionsByTopic,
    /** The member gives up everything before it joins. Not of the first version. */
    eager: Schema.optionalKey(Schema.Boolean),
    /** Its lists of topics that go together. Not of the first version. */
    copartitioned: Schema.optionalKey(Schema.Array(Schema.Array(Schema.String)))
  })
)
const AssignmentBody = Schema.fromJsonString(
  Schema.Struct({ incomplete: Schema.Boolean, partitions: PartitionsByTopic })
)
const encodeClaim = Schema.encodeSync(Claim)
const decodeClaim = Schema.decodeUnknownOption(Claim)
const encodeAssignmentBody = Schema.encodeSync(AssignmentBody)
const decodeAssignmentBody = Schema.decodeUnknownOption(AssignmentBody)

const flat = (
  pairs: ReadonlyArray<readonly [topic: string, partitions: ReadonlyArray<number>]>
): ReadonlyArray<ConsumerRecord.TopicPartition> =>
  pairs.flatMap(([topic, partitions]) => partitions.map((partition) => ({ topic, partition })))

/** The same under every assignment protocol that the member lists. The claim stands twice: where other clients and brokers look for it, and in `userData`, where older versions of this client do. */
export const encodeMember = (
  { topics, owned, generation, copartitionedTopics }: Omit<Member, "memberId">,
  eager: boolean
): Buffer => {
  const copartitioned = copartitionedTopics.length === 0 ? {} : { copartitioned: copartitionedTopics }
  const claim = { generation, owned: groupedByTopic(owned), ...(eager && { eager }), ...copartitioned }
  return encodeSubscription({ ...{ topics, owned, generation }, userData: Buffer.from(encodeClaim(claim)) })
}

/** A member as the leader reads it. */
export interface DecodedMember extends Member {
  /** It is of this client, of whatever version: it has written its claim. */
  readonly isConnector: boolean
  /** It is of a version of this client that reads its assignment in `userData` only. */
  readonly readsUserData: boolean
  /** It gives up all partitions before it joins. Known of members of this client only. */
  readonly isEager: boolean
}

/** Undefined when the bytes are not of Kafka's consumer protocol. */
export const decodeMember = (memberId: string, metadata: Buffer): DecodedMember | undefined => {
  const subscription = decodeSubscription(metadata)
  if (subscription === undefined) return undefined
  const { version, topics, userData, owned, generation } = subscription
  return Option.match(decodeClaim(userData.toString()), {
    onNone: () => ({
      ...{ memberId, topics, owned, generation, copartitionedTopics: [] },
      ...{ isConnector: false, readsUserData: false, isEager: false }
    }),
    onSome: (claim) => ({
      ...{ memberId, topics, owned: flat(claim.owned), generation: claim.generation },
      copartitionedTopics: claim.copartitioned ?? [],
      isConnector: true,
      readsUserData: version === 0,
      isEager: claim.eager === true
    })
  })
}

/** The partitions of a member in this round. */
export interface Assignment {
  readonly partitions: ReadonlyArray<ConsumerRecord.TopicPartition>
  /** True when another round will follow. */
  readonly incomplete: boolean
  /** True when a member of this client is eager: in a rebalance it stands still until all have joined. */
  readonly hasEager: boolean
  /** True when the leader respects `copartitionedTopics`. */
  readonly byUnits: boolean
}

const none = Buffer.alloc(0)

/** The bits of the byte behind the last field of an assignment, which is left out when it is 0. */
const bits = { incomplete: 1, hasEager: 2, byUnits: 4 }

export const encodeAssignment = (
  { partitions, incomplete, hasEager, byUnits }: Assignment,
  { readsUserData }: Pick<DecodedMember, "readsUserData">
): Buffer => {
  const body = () => Buffer.from(encodeAssignmentBody({ incomplete, partitions: groupedByTopic(partitions) }))
  const flags = (incomplete ? bits.incomplete : 0) | (hasEager ? bits.hasEager : 0) | (byUnits ? bits.byUnits : 0)
  return encodeGivenPartitions({
    partitions,
    userData: readsUserData ? body() : none,
    behind: flags === 0 ? none : Buffer.of(flags)
  })
}

/**
 * The assignment of a member, by whatever leader, or by the broker (ruling 80). Leaders of former versions of this client write it in `userData`, too. Undefined for bytes
 * that are not of Kafka's consumer protocol; none at all mean no partitions.
 */
export const decodeAssignment = (bytes: Buffer): Assignment | undefined => {
  const given = decodeGivenPartitions(bytes)
  if (given === undefined) return undefined
  const flags = given.behind.length === 1 ? given.behind[0]! : 0
  return Option.match(decodeAssignmentBody(given.userData.toString()), {
    onNone: () => ({
      partitions: given.partitions,
      incomplete: (flags & bits.incomplete) !== 0,
      hasEager: (flags & bits.hasEager) !== 0,
      byUnits: (flags & bits.byUnits) !== 0
    }),
    onSome: ({ incomplete, partitions }) => ({
      ...{ incomplete, partitions: flat(partitions) },
      ...{ hasEager: false, byUnits: false }
    })
  })
}
