/**
 * Help for those who write an adapter of the `Broker` port. Programs that use the connector need none of it.
 */
import * as Effect from "effect/Effect"
import type { ConsumerOptions } from "./Broker.ts"
import { UnexpectedBrokerError } from "./BrokerError.ts"
import * as Choices from "./Choices.ts"
import { partitionKey, type TopicPartition } from "./ConsumerRecord.ts"
import * as AssignmentStrategy from "./internal/port/assignmentStrategy.ts"
import * as Ids from "./internal/settings/ids.ts"
import * as Kinds from "./Kinds.ts"
import * as Ranges from "./Ranges.ts"

export { clients as clientsOf, refusal as refusalOf } from "./internal/checks/groupProtocol.ts"
export { isEager } from "./internal/port/assignmentStrategy.ts"
export { isOfCopy as isCopyHeader } from "./internal/record/headerSets.ts"
export { refusedRecord, unreadableRecord } from "./internal/record/refusedRecord.ts"

const reader = { ...Ranges.reader, clientId: Kinds.string, isolationLevel: Kinds.oneOf(Choices.isolationLevel) }

const producer = {
  ...Ranges.producer,
  clientId: Kinds.string,
  acks: Kinds.oneOf(Choices.producer.acks),
  idempotent: Kinds.flag,
  compression: Kinds.oneOf(Choices.producer.compression)
}

/** The kinds of the options of the port, by operation: of those that may be left out, and of those that may not. */
const optionKinds = {
  reader: { optional: reader, required: {} },
  consumer: {
    optional: {
      ...reader,
      ...Ranges.consumer,
      groupInstanceId: Ids.member,
      replacesGroupInstanceIds: Kinds.listOf(Ids.onWire, "a list of names"),
      partitionAssignmentStrategy: Kinds.listOf(Kinds.oneOf(AssignmentStrategy.names), "a list of protocols")
    },
    required: { groupId: Ids.onWire, topics: Kinds.listOf(Kinds.string, "a list of topics") }
  },
  producer: { optional: producer, required: {} },
  transactionalProducer: {
    optional: { ...producer, fences: Kinds.listOf(Ids.onWire, "a list of transactional ids") },
    required: { transactionalId: Ids.onWire }
  }
} as const

/**
 * Fails with `UnexpectedBrokerError`, code `INVALID_CONFIG`, when an option is of another kind, or a number out of its range (ruling 84): what Kafka's clients would cut to
 * 32 bits, take for zero, or take for their default.
 */
export const checkOptions = (
  operation: keyof typeof optionKinds,
  options: object
): Effect.Effect<void, UnexpectedBrokerError> =>
  Effect.suspend(() => {
    const { optional, required } = optionKinds[operation]
    const found = Kinds.struct(optional, required)("options", options)
    const issues = found.map((each) => ({ ...each, path: each.path.replace(/^options\./, "") }))
    if (issues.length === 0) return Effect.void
    const detail = issues.map(({ path, found, allowed }) => `${path}: found ${found}, allowed is ${allowed}`).join("; ")
    return Effect.fail(new UnexpectedBrokerError({ operation, code: "INVALID_CONFIG", detail, retryable: false }))
  })

/** The settings of a fetch, in bytes where they are numbers, where `FetchOptions` leave them out. */
export const fetchDefaults = {
  maxPartitionFetchBytes: 1024 * 1024,
  maxRecordBytes: 16 * 1024 * 1024,
  isolationLevel: "read_committed"
} as const

/**
 * A compressed record may hold so many bytes of the headers that the connector writes into copies (`isCopyHeader`), beside the `maxRecordBytes` of the rest. So a copy
 * can be read wherever its source was (ruling 78). The connector writes far less.
 */
export const maxCopyHeaderBytes = 1024 * 1024

/** The most bytes that an adapter fetches of one partition of the topic at once. */
export const maxFetchBytes = (options: ConsumerOptions, topic: string): number => {
  const { maxPartitionFetchBytes = fetchDefaults.maxPartitionFetchBytes, maxBytesByTopic } = options
  return Math.min(maxPartitionFetchBytes, maxBytesByTopic?.get(topic) ?? maxPartitionFetchBytes)
}

/** A member, as the group knows it. */
export interface Candidate {
  /** The member id that the coordinator gave. */
  readonly memberId: string
  /** The topics that the member subscribes to. */
  readonly topics: ReadonlySet<string>
  /** Keys (`ConsumerRecord.partitionKey`) of what it holds now. */
  readonly holds: ReadonlySet<string>
}

/**
 * Assigns partitions to members, for adapters that decide it themselves: sticky, and balanced over each topic as well as over all topics, so that a member that joins gets
 * its share of the main topic and not the retry topics instead. It first decides how many partitions of a topic each member gets, then which: those that
 * the member holds, and for the rest those that nobody keeps.
 *
 * The answer is the member of every partition that somebody subscribes to, by partition key. Depends on nothing but its arguments. Once members hold no more than they
 * were given, it gives the same again, so that partitions which move in two steps arrive where they were sent.
 */
export const assign = (
  candidates: ReadonlyArray<Candidate>,
  partitions: ReadonlyArray<TopicPartition>
): ReadonlyMap<string, string> => {
  const owners = new Map<string, string>()
  const totals = new Map(candidates.map(({ memberId }) => [memberId, 0]))
  for (const [topic, all] of byTopic(partitions)) {
    const subscribers = candidates.filter(({ topics }) => topics.has(topic))
    if (subscribers.length === 0) continue
    const held = holdings(subscribers, all)
    const quotas = share(subscribers, all.length, held, totals)
    const free = new Set(all)
    for (const { memberId } of subscribers) {
      for (const key of held.get(memberId)!.slice(0, quotas.get(memberId))) {
        owners.set(key, memberId)
        free.delete(key)
      }
    }
    const rest = Array.from(free)
    for (const { memberId } of subscribers) {
      const kept = Math.min(held.get(memberId)!.length, quotas.get(memberId)!)
      for (const key of rest.splice(0, quotas.get(memberId)! - kept)) owners.set(key, memberId)
    }
  }
  return owners
}

/** Keys of the partitions by topic; topics that few subscribe to need not come first, since each is shared by itself. */
const byTopic = (partitions: ReadonlyArray<TopicPartition>): ReadonlyMap<string, ReadonlyArray<string>> => {
  const topics = new Map<string, Array<string>>()
  for (const { topic, partition } of partitions) {
    const keys = topics.get(topic) ?? []
    keys.push(partitionKey(topic, partition))
    topics.set(topic, keys)
  }
  return topics
}

/** The partitions of a topic that each member holds. When two members claim a partition, the first one has it. */
const holdings = (
  subscribers: ReadonlyArray<Candidate>,
  all: ReadonlyArray<string>
): ReadonlyMap<string, ReadonlyArray<string>> => {
  const held = new Map<string, Array<string>>(subscribers.map(({ memberId }) => [memberId, []]))
  for (const key of all) {
    const holder = subscribers.find(({ holds }) => holds.has(key))
    if (holder !== undefined) held.get(holder.memberId)!.push(key)
  }
  return held
}

/**
 * How many of `count` partitions each gets: the same, and one more for as many as the division leaves. Those are the members that have the least of the topics
 * before, and among them who holds more already. Adds what it gives to `totals`.
 */
const share = (
  subscribers: ReadonlyArray<Candidate>,
  count: number,
  held: ReadonlyMap<string, ReadonlyArray<string>>,
  totals: Map<string, number>
): ReadonlyMap<string, number> => {
  const base = Math.floor(count / subscribers.length)
  const quotas = new Map(subscribers.map(({ memberId }) => [memberId, base]))
  const total = (memberId: string) => totals.get(memberId)!
  const holdsMore = (memberId: string) => held.get(memberId)!.length > base
  for (let left = count - base * subscribers.length; left > 0; left--) {
    const open = subscribers.flatMap(({ memberId }) => (quotas.get(memberId) === base ? [memberId] : []))
    const least = Math.min(...open.map(total))
    const lightest = open.filter((memberId) => total(memberId) === least)
    quotas.set(lightest.find(holdsMore) ?? lightest[0]!, base + 1)
  }
  for (const [memberId, quota] of quotas) totals.set(memberId, total(memberId) + quota)
  return quotas
}
