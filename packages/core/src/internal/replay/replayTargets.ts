/**
 * Which topic and partition the copy of a dead letter goes to.
 *
 * A stranger who may write dead letters chooses what their headers say. So the headers choose only among the topics that the binding's settings name: its main topic, and its
 * `origins`. No replay writes to another topic, such as a journal, a retry or dead letter topic of any binding, or a topic of Kafka itself.
 */
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import type { Options, Selection } from "./replayRun.ts"

/** Where a copy goes. Without a partition, the key decides. */
export interface Target {
  readonly topic: string
  readonly partition: number | undefined
}

/** Undefined when the dead letter comes from a topic that the settings do not name. */
export const targetOf = (
  options: Pick<Options, "sourceTopic" | "deadLetterTopic" | "tiers" | "origins">,
  { tier }: Pick<Selection, "tier">,
  letter: DeadLetterRecord
): Target | undefined => {
  const { sourceTopic, tiers, origins = [] } = options
  const { originalTopic, originalPartition } = letter
  if (tier !== undefined)
    return { topic: tiers.topicOf(tier).topic, partition: letter.key === null ? originalPartition : undefined }
  if (isOriginLost(options, letter)) return { topic: sourceTopic, partition: undefined }
  // To the original partition, whatever partitioner chose it.
  return originalTopic === sourceTopic || origins.includes(originalTopic)
    ? { topic: originalTopic, partition: originalPartition }
    : undefined
}

/**
 * Whether the headers name no topic that the record can have come from, so that it goes to the main topic. A topic that the binding derives is none: a record of the dead
 * letter topic would come back to it in circles, and one of a retry topic would be there for every group. A letter that was marked for a topic of nobody here came by a
 * mirror that renames topics: it names the topic of the other cluster, which this binding does not read.
 */
const isOriginLost = (
  { sourceTopic, deadLetterTopic, tiers }: Pick<Options, "sourceTopic" | "deadLetterTopic" | "tiers">,
  letter: DeadLetterRecord
): boolean => {
  const isDerived = (topic: string) => topic === deadLetterTopic || tiers.ofTopic(topic) !== undefined
  if (letter.originFrom === "none" || isDerived(letter.originalTopic)) return true
  if (letter.originalTopic === sourceTopic) return false
  const markedFor = CopyOwner.partsOf(letter.headers)?.topic
  return markedFor !== undefined && !isDerived(markedFor)
}
