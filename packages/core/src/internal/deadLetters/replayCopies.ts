/**
 * The copies that a replay publishes: where each goes, and with which headers.
 */
import { Clock, Effect } from "effect"
import type { ConsumerRecord, Header, ProducerRecord } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import * as Partitioner from "../../Partitioner.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as ReplayHeaders from "../record/replayHeaders.ts"
import { CopyRefused, type Options, type Run } from "./replayRun.ts"

/** The copy of a dead letter for the topic that it came from, or for the retry tier of the run. */
export const copyOf = Effect.fnUntraced(function* (run: Run, letter: DeadLetterRecord) {
  const { options, selection } = run
  const { record, key, value } = letter
  // Time and partition are set here, because the bond in the headers names them.
  const timestamp = yield* Clock.currentTimeMillis
  const copy = (topic: string, headers: ReadonlyArray<Header>, partition: number) => ({
    record,
    copy: { topic, key, value, headers, partition, timestamp, compression: record.compression } satisfies ProducerRecord
  })
  if (selection.tier !== undefined) {
    const { topic } = options.tiers.topicOf(selection.tier)
    const headers = ReplayHeaders.forTier(letter, options.groupId, { topic, tier: selection.tier }, timestamp)
    const partition = yield* partitionIn(run, letter, topic, key === null ? letter.originalPartition : undefined)
    return copy(topic, headers, partition)
  }
  const isKnown = isOriginKnown(options, letter)
  const topic = isKnown ? letter.originalTopic : options.sourceTopic
  // To the original partition, whatever partitioner chose it. A record of unknown origin is partitioned by its key.
  const partition = yield* partitionIn(run, letter, topic, isKnown ? letter.originalPartition : undefined)
  const target = { clusterId: run.admin.clusterId, topic, partition, timestamp }
  return copy(topic, ReplayHeaders.forSource(letter, options.groupId, target), partition)
})

/**
 * Whether a replay goes to the topic that the letter names. A topic that the binding derives is none: a record of the dead letter topic would come back to it in
 * circles, and one of a retry topic would be there for every group. A letter that was marked for a topic of nobody here came by a mirror that renames topics: it names the
 * topic of the other cluster, which this binding does not read.
 */
const isOriginKnown = ({ sourceTopic, deadLetterTopic, tiers }: Options, letter: DeadLetterRecord): boolean => {
  const isDerived = (topic: string) => topic === deadLetterTopic || tiers.ofTopic(topic) !== undefined
  if (letter.originFrom === "none" || isDerived(letter.originalTopic)) return false
  const markedFor = CopyOwner.partsOf(letter.headers)?.topic
  return letter.originalTopic === sourceTopic || markedFor === undefined || isDerived(markedFor)
}

/** The wanted partition if the topic has it, or else the one of the key. */
const partitionIn = Effect.fnUntraced(function* (
  run: Run,
  { record, key }: DeadLetterRecord,
  topic: string,
  wanted?: number
) {
  const partitions = run.partitionCounts.get(topic) ?? (yield* countPartitions(run, record, topic))
  if (wanted !== undefined && wanted < partitions) return wanted
  return key === null ? Number(record.offset % BigInt(partitions)) : Partitioner.partitionFor(key, partitions)
})

const countPartitions = Effect.fnUntraced(function* (run: Run, record: ConsumerRecord, topic: string) {
  const { partitions } = yield* Effect.mapError(
    run.admin.describeTopic(topic),
    (error) => new CopyRefused(record, error)
  )
  run.partitionCounts.set(topic, partitions)
  return partitions
})
