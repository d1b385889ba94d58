/**
 * Lists dead letters for operators: page by page, with the state of each.
 */
import { Effect, Stream } from "effect"
import type { UnreadableBatch } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Discarded, ListedDeadLetter, Page } from "../../Replay.ts"
import * as LettersTarget from "../letters/lettersTarget.ts"
import * as Journal from "../replay/replayJournal.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as TopicScan from "../replay/topicScan.ts"

/** Lists records of one partition, in order. Empty when the partition does not exist. */
export const list = (
  target: LettersTarget.LettersTarget,
  page: Page
): Effect.Effect<ReadonlyArray<ListedDeadLetter>, BrokerError> =>
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
      Stream.map(
        (entry): ListedDeadLetter =>
          "problem" in entry
            ? { ...LettersTarget.ofUnreadable(entry), unreadable: entry }
            : LettersTarget.read(target, found, entry)
      ),
      Stream.runCollect
    )
  }).pipe(Effect.scoped)

/** Lists the discarded records with their reasons. */
export const discarded = (target: ReplayProgress.Target): Effect.Effect<ReadonlyArray<Discarded>, BrokerError> =>
  Effect.gen(function* () {
    const admin = yield* target.broker.admin
    const topic = Journal.topicOf(target.deadLetterTopic)
    const logOffsets = yield* ReplayProgress.logOffsetsOf(admin, topic)
    const scan = yield* TopicScan.open({ broker: target.broker, admin })
    return yield* Journal.discarded(scan, topic, logOffsets, target)
  }).pipe(Effect.scoped)
