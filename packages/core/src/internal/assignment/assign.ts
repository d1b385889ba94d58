/** The assignor of the connector's own protocol. */
import { partitionKey, type TopicPartition } from "../../ConsumerRecord.ts"
import type { Candidate } from "./candidate.ts"
import { sourcesOf } from "./units.ts"

/** The decision so far. */
interface Decision {
  /** The owner of each partition, by partition key. */
  readonly owners: Map<string, string>
  /** Number of partitions of each member. */
  readonly totals: Map<string, number>
}

/**
 * Assigns partitions to members, for adapters that decide it themselves: sticky, and balanced over each topic as well as over all topics, so that a member that joins gets
 * its share of the main topic and not the retry topics instead. It first decides how many partitions of a topic each member gets, then which: those that
 * the member holds, and for the rest those that nobody keeps. Of topics that go together (`copartitionedTopics`) it does so for the source; partitions of the others
 * follow those of the source, where there is one and its owner subscribes to their topic.
 *
 * The answer is the member of every partition that somebody subscribes to, by partition key. Depends on nothing but its arguments. Once members hold no more than they
 * were given, it gives the same again, so that partitions which move in two steps arrive where they were sent.
 */
export const assign = (
  candidates: ReadonlyArray<Candidate>,
  partitions: ReadonlyArray<TopicPartition>
): ReadonlyMap<string, string> => {
  const decision: Decision = { owners: new Map(), totals: new Map(candidates.map(({ memberId }) => [memberId, 0])) }
  const sources = sourcesOf(candidates)
  const sourceOf = (topic: string) => sources.get(topic) ?? topic
  for (const [source, family] of Map.groupBy(partitions, ({ topic }) => sourceOf(topic))) {
    const topics = Map.groupBy(family, ({ topic }) => topic)
    distribute(candidates, source, topics.get(source) ?? [], decision)
    topics.delete(source)
    for (const [topic, followers] of topics) {
      const rest = follow(candidates, source, followers, decision)
      distribute(candidates, topic, rest, decision)
    }
  }
  return decision.owners
}

/** Gives partitions to the owners of their sources, and returns those that no source decides. */
const follow = (
  candidates: ReadonlyArray<Candidate>,
  source: string,
  followers: ReadonlyArray<TopicPartition>,
  { owners, totals }: Decision
): ReadonlyArray<TopicPartition> => {
  const byId = new Map(candidates.map((candidate) => [candidate.memberId, candidate]))
  return followers.filter(({ topic, partition }) => {
    const owner = byId.get(owners.get(partitionKey(source, partition)) ?? "")
    if (owner === undefined || !owner.topics.has(topic)) return true
    owners.set(partitionKey(topic, partition), owner.memberId)
    totals.set(owner.memberId, totals.get(owner.memberId)! + 1)
    return false
  })
}

/** Shares partitions of one topic among those that subscribe to it. */
const distribute = (
  candidates: ReadonlyArray<Candidate>,
  topic: string,
  partitions: ReadonlyArray<TopicPartition>,
  { owners, totals }: Decision
): void => {
  const subscribers = candidates.filter(({ topics }) => topics.has(topic))
  if (subscribers.length === 0 || partitions.length === 0) return
  const keys = partitions.map(({ partition }) => partitionKey(topic, partition))
  const held = holdings(subscribers, keys)
  const quotas = share(subscribers, keys.length, held, totals)
  const free = new Set(keys)
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
