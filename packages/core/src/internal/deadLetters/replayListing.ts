/**
 * Lists dead letters for operators: page by page, with the state of each.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { PartitionOffsets, UnreadableBatch } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { InvalidArgument, ListedDeadLetter, Page } from "../../Replay.ts"
import * as LettersTarget from "../letters/lettersTarget.ts"
import type * as CopyOwner from "../record/copyOwner.ts"
import * as HeaderValues from "../record/headerValues.ts"
import * as Arguments from "../replay/arguments.ts"
import * as Audits from "../replay/replayAudits.ts"
import * as Journal from "../replay/replayJournal.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as TopicScan from "../replay/topicScan.ts"

/** Lists records of one partition, in order. Empty when the partition does not exist. */
export const list = (
  target: LettersTarget.LettersTarget,
  asked: Page
): Effect.Effect<ReadonlyArray<ListedDeadLetter>, BrokerError | InvalidArgument> =>
  Effect.gen(function* () {
    const page = yield* Arguments.options("list", "page", asked, ["partition", "from", "count"])
    yield* Arguments.within("list", "partition", page.partition, [0, HeaderValues.maxInt32])
    if (page.from !== undefined) yield* Arguments.offset("list", "from", page.from)
    yield* Arguments.count("list", page.count)
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
      Stream.map(
        (entry): ListedDeadLetter =>
          "problem" in entry
            ? { ...LettersTarget.ofUnreadable(entry), unreadable: entry }
            : LettersTarget.read(target, found, entry)
      ),
      Stream.runCollect
    )
  }).pipe(Effect.scoped)

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
