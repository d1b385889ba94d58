/**
 * Loads the replay progress of a dead letter topic: the replay position of each partition, and a scan that reads it.
 */
import { Effect, type Scope, Stream } from "effect"
import type { Admin, Broker, PartitionOffsets } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as TopicName from "../../TopicName.ts"
import * as Journal from "./replayJournal.ts"
import * as TopicScan from "./topicScan.ts"

export interface Target {
  readonly broker: Broker["Service"]
  readonly groupId: string
  readonly deadLetterTopic: string
}

export interface PartitionProgress extends PartitionOffsets {
  /** All records below this offset are dealt with. Always within the log. */
  readonly position: bigint
  /** Records at or above the position that are dealt with already: timestamp by offset. */
  readonly taken: ReadonlyMap<bigint, number>
}

export interface ReplayProgress {
  readonly partitions: ReadonlyArray<PartitionProgress>
  readonly scan: TopicScan.TopicScan
}

/** Loads the progress. It has no partitions when the topic does not exist or is empty. */
export const load = Effect.fnUntraced(function* (
  { broker, groupId, deadLetterTopic }: Target,
  admin: Admin
): Effect.fn.Return<ReplayProgress, BrokerError, Scope.Scope> {
  const journalTopic = Journal.topicOf(deadLetterTopic)
  const logOffsets = yield* logOffsetsOf(admin, deadLetterTopic)
  const journalOffsets = logOffsets.length === 0 ? [] : yield* logOffsetsOf(admin, journalTopic)
  const topics = journalOffsets.length === 0 ? [deadLetterTopic] : [deadLetterTopic, journalTopic]
  const scan = yield* openScan({ broker, groupId }, topics)
  if (logOffsets.every(({ logStart, logEnd }) => logStart >= logEnd)) return { partitions: [], scan }
  const journal = yield* Journal.load(scan, journalTopic, journalOffsets, groupId)
  const offsets = yield* admin.committedOffsets(TopicName.deadLetterGroup(groupId), [deadLetterTopic])
  const committed = new Map(offsets.map(({ partition, offset }) => [partition, offset]))
  const partitions = yield* Effect.forEach(logOffsets, (partition) =>
    Effect.gen(function* () {
      const position =
        committed.get(partition.partition) ?? (yield* journaled(scan, deadLetterTopic, partition, journal))
      const taken = journal.taken.get(partition.partition) ?? new Map<bigint, number>()
      return { ...partition, position: within(partition, position), taken }
    })
  )
  return { partitions, scan }
})

/** Opens a scan in a group whose name begins with `{groupId}.dlt`. */
export const openScan = ({ broker, groupId }: Pick<Target, "broker" | "groupId">, topics: ReadonlyArray<string>) =>
  TopicScan.open({ broker, groupId: TopicName.deadLetterGroup(groupId), topics })

/** Whether the record at or above the position is dealt with. The timestamp must match, because the topic may have been recreated. */
export const isTaken = ({ taken }: PartitionProgress, record: ConsumerRecord): boolean =>
  taken.get(record.offset) === record.timestamp

/** The log offsets of a topic; empty when it does not exist. */
export const logOffsetsOf = (
  admin: Admin,
  topic: string
): Effect.Effect<ReadonlyArray<PartitionOffsets>, BrokerError> =>
  admin.topicOffsets(topic).pipe(Effect.catchTag("UnknownTopic", () => Effect.succeed([])))

/** Falls back to the log start for a position outside the log: retention has passed it, or the topic was recreated. */
const within = ({ logStart, logEnd }: PartitionOffsets, position: bigint | undefined): bigint =>
  position === undefined || position < logStart || position > logEnd ? logStart : position

/** The position in the journal, if the record below it is still the same one. */
const journaled = Effect.fnUntraced(function* (
  scan: TopicScan.TopicScan,
  topic: string,
  { partition, logStart, logEnd }: PartitionOffsets,
  journal: Journal.Journal
) {
  const found = journal.positions.get(partition)
  if (found === undefined) return undefined
  const { anchor, position } = found
  if (anchor === undefined || anchor.offset < logStart) return position
  if (anchor.offset >= logEnd) return undefined
  const range = { topic, partition, from: anchor.offset, to: anchor.offset + 1n }
  const [record] = yield* Stream.runCollect(scan.read(range))
  return record === undefined || record.timestamp === anchor.timestamp ? position : undefined
})
