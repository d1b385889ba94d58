/**
 * Dead letters as an operator looks at them: page by page, with what was done about each.
 */
import { Effect, Stream } from "effect"
import type { BrokerError } from "../BrokerError.ts"
import * as DeadLetterRecord from "../DeadLetterRecord.ts"
import * as Journal from "./replayJournal.ts"
import * as Survey from "./replaySurvey.ts"

export interface Listed {
  readonly letter: DeadLetterRecord.DeadLetterRecord
  /** `waiting`: a replay would take it, if it was not replayed too often. `dealt-with`: replayed, passed over, or given up. */
  readonly state: "waiting" | "dealt-with"
}

export interface Page {
  /** Of this partition. */
  readonly partition: number
  /** From this offset on. Default: the oldest. */
  readonly from?: bigint
  /** Most records, 1 or more. */
  readonly count: number
}

/** Records of one partition, in order. None when there is no such partition. */
export const list = (target: Survey.Target, page: Page): Effect.Effect<ReadonlyArray<Listed>, BrokerError> =>
  Effect.gen(function* () {
    const admin = yield* target.broker.admin
    const { partitions, scan } = yield* Survey.take(target, admin)
    const found = partitions.find(({ partition }) => partition === page.partition)
    if (found === undefined) return []
    const { partition, logStart, logEnd, position } = found
    const from = page.from === undefined || page.from < logStart ? logStart : page.from
    return yield* scan.read({ topic: target.deadLetterTopic, partition, from, to: logEnd }).pipe(
      Stream.take(page.count),
      Stream.map((record): Listed => {
        const isDone = record.offset < position || Survey.isTaken(found, record)
        return { letter: DeadLetterRecord.read(record), state: isDone ? "dealt-with" : "waiting" }
      }),
      Stream.runCollect
    )
  }).pipe(Effect.scoped)

/** The records that were given up, with the reasons. */
export const discarded = (target: Survey.Target): Effect.Effect<ReadonlyArray<Journal.Audit>, BrokerError> =>
  Effect.gen(function* () {
    const admin = yield* target.broker.admin
    const topic = Journal.topicOf(target.deadLetterTopic)
    const bounds = yield* Survey.boundsOf(admin, topic)
    const scan = yield* Survey.openScan(target, [topic])
    return yield* Journal.discarded(scan, topic, bounds, target.groupId)
  }).pipe(Effect.scoped)
