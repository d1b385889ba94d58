/**
 * Units: partition p of a source topic, and partition p of each topic that follows it. The parts of a unit have one owner, and move together.
 */
import { partitionKey, type TopicPartition } from "../../ConsumerRecord.ts"
import type { Candidate } from "./candidate.ts"

type Announcement = Pick<Candidate, "copartitionedTopics">

/**
 * The source topic of each topic that a member names in `copartitionedTopics`. Members with different lists are of different releases: the lists are read in one order,
 * whoever leads, and the first one that names a topic decides.
 */
export const sourcesOf = (members: ReadonlyArray<Announcement>): ReadonlyMap<string, string> => {
  const lists = new Map(
    members.flatMap(({ copartitionedTopics = [] }) => copartitionedTopics.map((list) => [JSON.stringify(list), list]))
  )
  const sources = new Map<string, string>()
  for (const [, [first, ...followers]] of [...lists].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (first === undefined) continue
    const source = sources.get(first) ?? first
    for (const topic of [first, ...followers]) if (!sources.has(topic)) sources.set(topic, source)
  }
  return sources
}

/**
 * Those of the partitions that their owners may have now: what they hold already, and what is free. A part of a unit is free once no other member holds a part of it, so
 * that the unit arrives whole. `owners` is the answer of `assign`, `holders` the member that holds a partition now; both by partition key.
 */
export const grantable = (
  members: ReadonlyArray<Announcement>,
  partitions: ReadonlyArray<TopicPartition>,
  owners: ReadonlyMap<string, string>,
  holders: ReadonlyMap<string, string>
): ReadonlyArray<TopicPartition> => {
  const sources = sourcesOf(members)
  const parts = partitions.flatMap((at) => {
    const key = partitionKey(at.topic, at.partition)
    const owner = owners.get(key)
    const source = partitionKey(sources.get(at.topic) ?? at.topic, at.partition)
    // A partition without a source, or whose owner is not the source's, is a unit of its own.
    return owner === undefined
      ? []
      : [{ at, owner, holder: holders.get(key), unit: owners.get(source) === owner ? source : key }]
  })
  const taken = new Set(
    parts.flatMap(({ owner, holder, unit }) => (holder === undefined || holder === owner ? [] : [unit]))
  )
  return parts.flatMap(({ at, owner, holder, unit }) =>
    holder === owner || (holder === undefined && !taken.has(unit)) ? [at] : []
  )
}
