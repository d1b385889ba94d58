/**
 * Who gets which partition. Sticky: a partition moves only where balance needs it, and only to a member subscribed to its topic.
 */
import { ConsumerRecord } from "@eventbus/core"

export interface Candidate {
  readonly memberId: string
  readonly topics: ReadonlySet<string>
  /** Keys (`partitionKey`) that the member holds now. */
  readonly holds: ReadonlySet<string>
}

/** The target assignment: the member of every partition that somebody subscribes to, by partition key. */
export const assign = (
  candidates: ReadonlyArray<Candidate>,
  partitions: ReadonlyArray<ConsumerRecord.TopicPartition>
): ReadonlyMap<string, string> => {
  const load = new Map(candidates.map((candidate) => [candidate.memberId, 0]))
  const owner = new Map<string, Candidate>()
  const give = (key: string, candidate: Candidate): void => {
    const previous = owner.get(key)
    if (previous) load.set(previous.memberId, load.get(previous.memberId)! - 1)
    owner.set(key, candidate)
    load.set(candidate.memberId, load.get(candidate.memberId)! + 1)
  }
  const lightest = (topic: string): Candidate | undefined => {
    let best: Candidate | undefined
    for (const candidate of candidates) {
      if (!candidate.topics.has(topic)) continue
      if (best === undefined || load.get(candidate.memberId)! < load.get(best.memberId)!) best = candidate
    }
    return best
  }
  const keyed = partitions.map((at) => ({ topic: at.topic, key: ConsumerRecord.partitionKey(at.topic, at.partition) }))

  for (const { topic, key } of keyed) {
    const holder = candidates.find((candidate) => candidate.holds.has(key) && candidate.topics.has(topic))
    if (holder) give(key, holder)
  }
  for (const { topic, key } of keyed) {
    const next = owner.has(key) ? undefined : lightest(topic)
    if (next) give(key, next)
  }
  // Each move narrows the gap between two members, so this ends.
  for (let moved = true; moved; ) {
    moved = false
    for (const { topic, key } of keyed) {
      const from = owner.get(key)
      const to = from && lightest(topic)
      if (!from || !to || load.get(from.memberId)! - load.get(to.memberId)! < 2) continue
      give(key, to)
      moved = true
    }
  }
  return new Map([...owner].map(([key, candidate]) => [key, candidate.memberId]))
}
