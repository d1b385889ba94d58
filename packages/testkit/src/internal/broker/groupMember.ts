/** The members of a group, as its coordinator knows them. */
import { Adapter, type Broker, type ConsumerRecord } from "@eventbus/core"

/** A partition that a member owns. */
export interface OwnedPartition extends ConsumerRecord.TopicPartition {
  /** The generation in which it was assigned. */
  readonly generation: number
  phase: "owned" | "revoking"
}

export interface JoinRequest {
  readonly clientId: string
  readonly groupInstanceId: string | undefined
  readonly topics: ReadonlySet<string>
  /** Its assignment protocols, the preferred one first. */
  readonly strategies: ReadonlyArray<Broker.AssignmentStrategy>
  /** Topics that go together. */
  readonly copartitionedTopics: ReadonlyArray<ReadonlyArray<string>>
  readonly sessionTimeoutMillis: number
  readonly rebalanceTimeoutMillis: number
  /** Tells the session that the coordinator's state has changed. */
  readonly notify: () => void
}

export interface Member extends JoinRequest {
  readonly memberId: string
  state: "joined" | "left" | "expired" | "fenced"
  /** By partition key. */
  readonly owned: Map<string, OwnedPartition>
  lastSeenMillis: number
  cancelExpiry: () => void
}

/** The members as the assignor sees them. */
export const candidatesOf = (members: ReadonlyArray<Member>, protocol: string): ReadonlyArray<Adapter.Candidate> => {
  const inUnits = Adapter.honoursUnits(protocol)
  return members.map(({ memberId, topics, owned, copartitionedTopics }) => ({
    ...{ memberId, topics, holds: new Set(owned.keys()) },
    copartitionedTopics: inUnits ? copartitionedTopics : []
  }))
}

/** The holder of each partition, by partition key: `releasing` for a member that is giving it up, which may be its next owner too. */
export const holdersOf = (members: ReadonlyArray<Member>): ReadonlyMap<string, string> => {
  const held = members.flatMap(({ memberId, owned }) =>
    [...owned].map(([key, { phase }]) => [key, phase === "owned" ? memberId : releasing] as const)
  )
  return new Map(held)
}

/** Stands in place of the member that is giving a partition up: no member has this id. */
const releasing = ""

/** Whether a static member that comes back asks for the same as before. */
export const sameSubscription = (a: JoinRequest, b: JoinRequest): boolean =>
  a.topics.size === b.topics.size &&
  [...a.topics].every((topic) => b.topics.has(topic)) &&
  JSON.stringify(a.copartitionedTopics) === JSON.stringify(b.copartitionedTopics)
