/** Restores dead letters that were given up: they wait again, and the journal keeps who gave them up and who brought them back, why and when. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Admin } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, ProducerRecord, RecordPosition } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import type { Discarded } from "../../Replay.ts"
import * as Audits from "./replayAudits.ts"
import * as Journal from "./replayJournal.ts"
import * as ReplayProgress from "./replayProgress.ts"
import type { Options, Run } from "./replayRun.ts"
import * as TopicScan from "./topicScan.ts"

const placeOf = ({ partition, offset }: Omit<RecordPosition, "topic">): string => `${partition}/${offset}`

/** The letters that the group has given up, under its name or a former one, by partition and offset. */
export const load = Effect.fnUntraced(function* (
  { broker, groupId, adopts, deadLetterTopic }: Options,
  admin: Admin
): Effect.fn.Return<ReadonlyMap<string, Discarded>, BrokerError, Scope.Scope> {
  const topic = Journal.topicOf(deadLetterTopic)
  const logs = yield* ReplayProgress.logOffsetsOf(admin, topic)
  const scan = yield* TopicScan.open({ broker, admin })
  const found = yield* Audits.discarded(scan, topic, logs, { groupId, adopts })
  // The entries of the group's own name come last, and count.
  const ordered = [
    ...found.filter((each) => each.groupId !== groupId),
    ...found.filter((each) => each.groupId === groupId)
  ]
  return new Map(ordered.map((each) => [`${each.partition}/${each.offset}`, each]))
})

/** Whether the letter was given up, and is dealt with for that. An entry for a record of a topic that was deleted names another origin. */
export const isGivenUp = (
  { options, selection }: Run,
  partition: ReplayProgress.PartitionProgress,
  { record, originalTopic, originalPartition, originalOffset }: DeadLetterRecord
): boolean => {
  const given = selection.restores?.discarded.get(placeOf(record))
  return (
    given?.originalTopic === originalTopic &&
    given.originalPartition === originalPartition &&
    given.originalOffset === String(originalOffset) &&
    (given.groupId === options.groupId || given.groupId === ReplayProgress.formerNameOf(partition, record)) &&
    (ReplayProgress.isTaken(partition, record) || ReplayProgress.isPassed(partition, record))
  )
}

/** The journal entries that let letters wait again. Behind the position, only a note says that a letter is not dealt with. */
export const notesOf = Effect.fnUntraced(function* (
  { options, selection }: Run,
  progress: ReplayProgress.PartitionProgress,
  letters: ReadonlyArray<DeadLetterRecord>
) {
  const { groupId, deadLetterTopic } = options
  const topic = Journal.topicOf(deadLetterTopic)
  const nowMillis = yield* Clock.currentTimeMillis
  return letters.flatMap(({ record }) => {
    const given = selection.restores?.discarded.get(placeOf(record))
    if (given === undefined) return []
    const { partition, offset } = record
    const { reason, by } = selection.restores!
    const ofRun = selection.planned === undefined ? {} : { runId: selection.planned.runId }
    // Its former name may have dealt with it, too: both say that it waits.
    const former = ReplayProgress.formerNameOf(progress, record)
    return [
      ...waitingAgain(topic, groupId, progress, record),
      ...(former === undefined ? [] : waitingAgain(topic, former, progress.former.get(former), record)),
      ...(former === undefined ? [] : [Journal.tombstone("adopted", topic, groupId, partition, offset)]),
      ...Audits.restoredEntries(topic, given, { reason, by, restoredAt: nowMillis, ...ofRun })
    ]
  })
})

const waitingAgain = (
  topic: string,
  group: string,
  progress: Pick<ReplayProgress.PartitionProgress, "position"> | undefined,
  record: ConsumerRecord
): ReadonlyArray<ProducerRecord> => [
  Journal.tombstone("taken", topic, group, record.partition, record.offset),
  ...(record.offset < (progress?.position ?? 0n) ? [Journal.recordEntry("refused", topic, group, record)] : [])
]
