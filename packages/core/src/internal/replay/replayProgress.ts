/**
 * Loads the replay progress of a dead letter topic: the replay position of each partition, and a scan that reads it.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Admin, Broker, PartitionOffsets } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { State } from "../../DeadLetterList.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import * as TopicName from "../../TopicName.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as Journal from "./replayJournal.ts"
import * as TopicScan from "./topicScan.ts"

/** A dead letter topic, and the groups whose dead letters in it are meant. */
export interface Target extends CopyOwner.Groups {
  readonly broker: Broker["Service"]
  readonly deadLetterTopic: string
  /** The largest record of a compressed batch that is read: what the binding's own consumers read. */
  readonly maxBufferedBytes: number
}

/** With the limit that decides about the state of a dead letter. */
export interface LimitedTarget extends Target {
  readonly maxReplays: number
}

/** How far a group has come in a partition. */
interface GroupProgress {
  /** All records below this offset are dealt with. Always within the log. */
  readonly position: bigint
  /** Records at or above the position that are dealt with already: timestamp by offset. */
  readonly taken: ReadonlyMap<bigint, number>
  /** Records that the custom handler failed for, below the position or not: timestamp by offset. */
  readonly failed: ReadonlyMap<bigint, number>
  /** Records below the position that a replay left, because they were replayed too often. */
  readonly exhausted: ReadonlyMap<bigint, Journal.Exhausted>
  /** Records below the position that a replay left, because the broker refused their copies: timestamp by offset. */
  readonly refused: ReadonlyMap<bigint, number>
  /** Records of former names that are dealt with: timestamp by offset. */
  readonly adopted: ReadonlyMap<bigint, number>
  /** Records that operators discarded. */
  readonly discarded: ReadonlyMap<bigint, true>
  /** The last record below the position that a replay has seen; undefined when the position is not that of the journal. */
  readonly anchor: Journal.Anchor | undefined
}

export interface PartitionProgress extends PartitionOffsets, GroupProgress {
  /** How far the adopted groups came with their dead letters. */
  readonly former: ReadonlyMap<string, GroupProgress>
}

export interface ReplayProgress {
  readonly partitions: ReadonlyArray<PartitionProgress>
  readonly scan: TopicScan.TopicScan
}

/** Loads the progress. It has no partitions when the topic does not exist or is empty. `onEntry` gets every record of the journal, in order. */
export const load = Effect.fnUntraced(function* (
  { broker, groupId, adopts, deadLetterTopic, maxBufferedBytes }: Target,
  admin: Admin,
  onEntry?: (record: ConsumerRecord) => void
): Effect.fn.Return<ReplayProgress, BrokerError, Scope.Scope> {
  const journalTopic = Journal.topicOf(deadLetterTopic)
  const [logOffsets, journalOffsets] = yield* Effect.all(
    [logOffsetsOf(admin, deadLetterTopic), logOffsetsOf(admin, journalTopic)],
    { concurrency: "unbounded" }
  )
  const scan = yield* TopicScan.open({ broker, admin, maxRecordBytes: maxBufferedBytes })
  if (logOffsets.every(({ logStart, logEnd }) => logStart >= logEnd)) return { partitions: [], scan }
  const journals = yield* Journal.load(scan, journalTopic, journalOffsets, [groupId, ...adopts], onEntry)
  const at = { scan, deadLetterTopic, logOffsets }
  const committed = yield* committedOf(admin, deadLetterTopic, groupId)
  const own = yield* ofGroup(at, committed, journals.get(groupId))
  const former = yield* Effect.forEach(
    adopts,
    Effect.fnUntraced(function* (group) {
      const offsets = yield* committedOfAdopted(admin, deadLetterTopic, group)
      return [group, yield* ofGroup(at, offsets, journals.get(group))] as const
    })
  )
  const partitions = logOffsets.map((offsets, index) => ({
    ...{ ...offsets, ...own[index]! },
    former: new Map(former.map(([group, of]) => [group, of[index]!]))
  }))
  return { partitions, scan }
})

/** This group may have no right to ask about the other one. Then the journal alone tells. */
export const committedOfAdopted = (admin: Admin, deadLetterTopic: string, group: string) =>
  Effect.catchTag(committedOf(admin, deadLetterTopic, group), "AuthorizationFailed", () =>
    Effect.succeed<ReadonlyMap<number, bigint>>(new Map())
  )

/** The offsets that replays of the group, or its custom handler, have committed, by partition. */
export const committedOf = (admin: Admin, deadLetterTopic: string, groupId: string) =>
  Effect.map(
    admin.committedOffsets(TopicName.deadLetterGroup(groupId), [deadLetterTopic]),
    (offsets): ReadonlyMap<number, bigint> => new Map(offsets.map(({ partition, offset }) => [partition, offset]))
  )

interface Log {
  readonly scan: TopicScan.TopicScan
  readonly deadLetterTopic: string
  readonly logOffsets: ReadonlyArray<PartitionOffsets>
}

/** The progress of a group in each partition. */
const ofGroup = (
  { scan, deadLetterTopic, logOffsets }: Log,
  committed: ReadonlyMap<number, bigint>,
  journal: Journal.Journal = Journal.empty
): Effect.Effect<ReadonlyArray<GroupProgress>, BrokerError> =>
  Effect.forEach(logOffsets, (offsets) =>
    Effect.gen(function* () {
      const { partition } = offsets
      const offset = committed.get(partition)
      // A replay that runs while the topic is deleted may commit for the new one: the journal tells, since one transaction writes both.
      const inJournal = offset === undefined || journal.positions.get(partition)?.position === offset
      const found = inJournal ? yield* journaled(scan, deadLetterTopic, offsets, journal) : undefined
      const of = <A>(entries: ReadonlyMap<number, ReadonlyMap<bigint, A>>): ReadonlyMap<bigint, A> =>
        entries.get(partition) ?? new Map<bigint, A>()
      return {
        position: within(offsets, inJournal ? found?.position : offset),
        anchor: found?.anchor,
        ...{ taken: of(journal.taken), failed: of(journal.failed), exhausted: of(journal.exhausted) },
        ...{ refused: of(journal.refused), adopted: of(journal.adopted), discarded: of(journal.discarded) }
      }
    })
  )

/** The state of a dead letter. All figures and lists decide by this function, so that they agree (ruling 75). A caller that has read the record passes the letter. */
export const stateOf = (
  target: Pick<LimitedTarget, "groupId" | "adopts" | "maxReplays">,
  progress: PartitionProgress,
  record: ConsumerRecord,
  letter?: DeadLetterRecord.DeadLetterRecord
): State => {
  if (CopyOwner.foreign(record, target) !== undefined) return "foreign"
  if (isTaken(progress, record)) return "dealt-with"
  if (isFailed(progress, record)) return "failed"
  if (isPassed(progress, record)) return "dealt-with"
  return (letter ?? DeadLetterRecord.read(record)).replayCount >= target.maxReplays ? "exhausted" : "waiting"
}

/** Whether an operator discarded a record that is dealt with, for the group or under a former name. */
export const isDiscarded = ({ discarded, former }: PartitionProgress, { offset }: ConsumerRecord): boolean =>
  discarded.has(offset) || Array.from(former.values()).some((each) => each.discarded.has(offset))

/** Whether the group's custom handler failed for the record. The timestamp must match, because the topic may have been recreated. */
const isFailed = ({ failed }: Pick<GroupProgress, "failed">, record: ConsumerRecord): boolean =>
  failed.get(record.offset) === record.timestamp

/** Whether a replay of the group moved the position past the record without dealing with it. The timestamp must match, as above. */
export const isLeft = (progress: Pick<GroupProgress, "exhausted" | "refused">, record: ConsumerRecord): boolean =>
  progress.exhausted.get(record.offset)?.timestamp === record.timestamp || isRefused(progress, record)

/** Whether it did so because the broker refused the copy. The timestamp must match, as above. */
export const isRefused = ({ refused }: Pick<GroupProgress, "refused">, record: ConsumerRecord): boolean =>
  refused.get(record.offset) === record.timestamp

/**
 * Whether the position tells that the record is dealt with. It says nothing about a record of a former name: the position may have passed it as another group's, before
 * the group adopted the name.
 */
export const isPassed = (progress: PartitionProgress, record: ConsumerRecord): boolean =>
  !isOfFormerName(progress, record) && isBehind(progress, record)

const isBehind = (progress: GroupProgress, record: ConsumerRecord): boolean =>
  record.offset < progress.position && !isFailed(progress, record) && !isLeft(progress, record)

/** Whether the group dead-lettered the record under a former name. */
export const isOfFormerName = (progress: PartitionProgress, record: ConsumerRecord): boolean =>
  formerNameOf(progress, record) !== undefined

/** The name under which it did; undefined for its own. */
export const formerNameOf = ({ former }: PartitionProgress, record: ConsumerRecord): string | undefined =>
  former.size === 0 ? undefined : CopyOwner.formerName(record, former.keys())

/** Whether the record is dealt with whatever the group's position is. The timestamp must match, as above. */
export const isTaken = (progress: PartitionProgress, record: ConsumerRecord): boolean => {
  const isIn = (entries: ReadonlyMap<bigint, number>) => entries.get(record.offset) === record.timestamp
  if (isIn(progress.taken)) return true
  const former = progress.former.get(formerNameOf(progress, record) ?? "")
  return former !== undefined && (isIn(progress.adopted) || isIn(former.taken) || isBehind(former, record))
}

/** The log offsets of a topic; empty when it does not exist. */
export const logOffsetsOf = (
  admin: Admin,
  topic: string
): Effect.Effect<ReadonlyArray<PartitionOffsets>, BrokerError> =>
  admin.topicOffsets(topic).pipe(Effect.catchTag("UnknownTopic", () => Effect.succeed([])))

/** Falls back to the log start for a position outside the log: retention has passed it, or the topic was recreated. */
const within = ({ logStart, logEnd }: PartitionOffsets, position: bigint | undefined): bigint =>
  position === undefined || position < logStart || position > logEnd ? logStart : position

/** The position in the journal, if it belongs to the topic of today. */
const journaled = Effect.fnUntraced(function* (
  scan: TopicScan.TopicScan,
  topic: string,
  { partition, logStart, logEnd }: PartitionOffsets,
  journal: Journal.Journal
) {
  const found = journal.positions.get(partition)
  if (found === undefined) return undefined
  const { anchor, position } = found
  const written = journal.topics.get(partition)
  const current =
    written?.position === position ? yield* scan.topicId({ topic, partition, offset: logStart }) : undefined
  if (current !== undefined) return current === written?.topicId ? found : undefined
  // An older version wrote the position, or the cluster has no ids of topics: the record below the position tells.
  if (anchor === undefined || anchor.offset < logStart) return found
  if (anchor.offset >= logEnd) return undefined
  const range = { topic, partition, from: anchor.offset, to: anchor.offset + 1n }
  const [record] = yield* Stream.runCollect(scan.read(range))
  return record === undefined || record.timestamp === anchor.timestamp ? found : undefined
})
