/**
 * Lists dead letters for operators: page by page, with the state of each.
 */
import { Effect, Stream } from "effect"
import type { PartitionOffsets, UnreadableBatch } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import type { ListedDeadLetter, Page } from "../../Replay.ts"
import type * as Fingerprint from "../failure/fingerprint.ts"
import type * as CopyOwner from "../record/copyOwner.ts"
import * as FailureHeaders from "../record/failureHeaders.ts"
import * as Audits from "../replay/replayAudits.ts"
import * as Journal from "../replay/replayJournal.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as TopicScan from "../replay/topicScan.ts"

/** With the user's function that groups dead letters whose headers have no fingerprint. */
interface ListTarget extends ReplayProgress.LimitedTarget {
  readonly ownFingerprint?: Fingerprint.OwnFingerprint | undefined
}

/** Lists records of one partition, in order. Empty when the partition does not exist. */
export const list = (target: ListTarget, page: Page): Effect.Effect<ReadonlyArray<ListedDeadLetter>, BrokerError> =>
  Effect.gen(function* () {
    const admin = yield* target.broker.admin
    const { partitions, scan } = yield* ReplayProgress.load(target, admin)
    const found = partitions.find(({ partition }) => partition === page.partition)
    if (found === undefined) return []
    const { partition, logStart, logEnd } = found
    const from = page.from === undefined || page.from < logStart ? logStart : page.from
    return yield* scan.pages({ topic: target.deadLetterTopic, partition, from, to: logEnd }).pipe(
      Stream.flatMap(({ records, unreadable }) =>
        Stream.fromIterable<ConsumerRecord | UnreadableBatch>(unreadable === undefined ? records : [unreadable])
      ),
      Stream.take(page.count),
      Stream.map((entry): ListedDeadLetter => {
        if ("problem" in entry) return unreadableEntry(entry)
        const letter = FailureHeaders.regrouped(DeadLetterRecord.read(entry), target.ownFingerprint)
        return { letter, state: ReplayProgress.stateOf(target, found, entry) }
      }),
      Stream.runCollect
    )
  }).pipe(Effect.scoped)

/** Of a batch that cannot be read, only the position is known. */
const unreadableEntry = (batch: UnreadableBatch): ListedDeadLetter => {
  const { topic, partition, offset } = batch
  const record = { topic, partition, offset, timestamp: 0, key: null, value: null, headers: [] }
  return { letter: DeadLetterRecord.read(record), state: "unreadable", unreadable: batch }
}

/** Lists the discarded records, or the restored ones, with their reasons. */
const audited =
  <A>(
    read: (
      scan: TopicScan.TopicScan,
      topic: string,
      logOffsets: ReadonlyArray<PartitionOffsets>,
      groups: CopyOwner.Groups
    ) => Effect.Effect<ReadonlyArray<A>, BrokerError>
  ) =>
  (target: ReplayProgress.Target): Effect.Effect<ReadonlyArray<A>, BrokerError> =>
    Effect.gen(function* () {
      const admin = yield* target.broker.admin
      const topic = Journal.topicOf(target.deadLetterTopic)
      const logOffsets = yield* ReplayProgress.logOffsetsOf(admin, topic)
      const scan = yield* TopicScan.open({ broker: target.broker, admin })
      return yield* read(scan, topic, logOffsets, target)
    }).pipe(Effect.scoped)

export const discarded = audited(Audits.discarded)
export const restored = audited(Audits.restored)
