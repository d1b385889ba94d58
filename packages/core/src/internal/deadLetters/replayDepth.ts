/**
 * Counts the dead letters of a group that wait, for the gauge: those that no replay has taken, that nobody has discarded, and that are the group's own (ruling 75).
 */
import { Effect, Stream } from "effect"
import type { Admin, PartitionOffsets } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as TopicName from "../../TopicName.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as Journal from "./replayJournal.ts"
import * as ReplayProgress from "./replayProgress.ts"

/** Offsets that a count reads at most. Beyond, the gauge shows how many offsets wait, an upper bound of the records. */
const mostRead = 10_000n

/** Answers the count. Reads records only when a log or a position has changed since the last answer. */
export const make = (target: ReplayProgress.Target): ((admin: Admin) => Effect.Effect<number, BrokerError>) => {
  const { groupId, deadLetterTopic } = target
  let last: { readonly seen: string; readonly records: number } | undefined
  return Effect.fnUntraced(function* (admin: Admin) {
    const logs = yield* ReplayProgress.logOffsetsOf(admin, deadLetterTopic)
    const journal = yield* ReplayProgress.logOffsetsOf(admin, Journal.topicOf(deadLetterTopic))
    const committed = yield* admin.committedOffsets(TopicName.deadLetterGroup(groupId), [deadLetterTopic])
    const seen = [
      ...[...logs, ...journal].map(({ partition, logStart, logEnd }) => `${partition}:${logStart}-${logEnd}`),
      ...committed.map(({ partition, offset }) => `${partition}@${offset}`)
    ].join(" ")
    if (last?.seen === seen) return last.records
    const positions = new Map(committed.map(({ partition, offset }) => [partition, offset]))
    const waiting = target.adopts.length > 0 ? offsetsOf(logs, new Map()) : offsetsOf(logs, positions)
    const records = waiting === 0n || waiting > mostRead ? Number(waiting) : yield* countRecords(target, admin)
    last = { seen, records }
    return records
  })
}

/** Offsets from the positions to the ends of the logs. */
const offsetsOf = (logs: ReadonlyArray<PartitionOffsets>, positions: ReadonlyMap<number, bigint>): bigint =>
  logs.reduce((sum, { partition, logStart, logEnd }) => {
    const position = positions.get(partition) ?? logStart
    return sum + logEnd - (position < logStart || position > logEnd ? logStart : position)
  }, 0n)

const countRecords = (target: ReplayProgress.Target, admin: Admin): Effect.Effect<number, BrokerError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { partitions, scan } = yield* ReplayProgress.load(target, admin)
      let records = 0
      for (const progress of partitions) {
        const { partition, position, logStart, logEnd } = progress
        const from = target.adopts.length > 0 ? logStart : position
        const range = { topic: target.deadLetterTopic, partition, from, to: logEnd }
        yield* Stream.runForEach(scan.read(range), (record) =>
          Effect.sync(() => {
            const isOurs = CopyOwner.foreign(record, target) === undefined
            if (isOurs && !ReplayProgress.isDone(progress, record)) records++
          })
        )
      }
      return records
    })
  )
