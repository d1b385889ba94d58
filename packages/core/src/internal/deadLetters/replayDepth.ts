/**
 * Counts the dead letters of a group that are not dealt with, for the gauge: those that no replay has taken, replayed `maxReplays` times or not, that nobody has
 * discarded, that no custom handler has handled, and that are the group's own (ruling 75). The offsets of a batch that cannot be read count, too: nobody has dealt with
 * its records.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Admin } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as Journal from "../replay/replayJournal.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as TopicScan from "../replay/topicScan.ts"

/** Offsets from the positions on that a count reads at most. Beyond, the gauge shows how many offsets wait, an upper bound of the records. */
const mostRead = 10_000n

/** Records below the positions that a count looks up at most, because the journal says that they are not dealt with. Beyond, they count without a look. */
const mostNoted = 1000

/** One fetch brings about as many records, so reading them costs less than another request. */
const closeOffsets = 100n

/** Answers the count. Reads records only when a log or a position has changed since the last answer. */
export const make = (target: ReplayProgress.LimitedTarget): ((admin: Admin) => Effect.Effect<number, BrokerError>) => {
  const { groupId, adopts, deadLetterTopic } = target
  let last: { readonly seen: string; readonly records: number } | undefined
  return Effect.fnUntraced(function* (admin: Admin) {
    const logs = yield* ReplayProgress.logOffsetsOf(admin, deadLetterTopic)
    const journal = yield* ReplayProgress.logOffsetsOf(admin, Journal.topicOf(deadLetterTopic))
    const own = yield* ReplayProgress.committedOf(admin, deadLetterTopic, groupId)
    const adopted = yield* Effect.forEach(adopts, (group) =>
      ReplayProgress.committedOfAdopted(admin, deadLetterTopic, group)
    )
    const seen = [
      ...[...logs, ...journal].map(({ partition, logStart, logEnd }) => `${partition}:${logStart}-${logEnd}`),
      ...[own, ...adopted].map((offsets) =>
        Array.from(offsets, ([partition, offset]) => `${partition}@${offset}`).join(" ")
      )
    ].join(", ")
    if (last?.seen === seen) return last.records
    last = { seen, records: yield* countRecords(target, admin) }
    return last.records
  })
}

const countRecords = (target: ReplayProgress.LimitedTarget, admin: Admin): Effect.Effect<number, BrokerError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { partitions, scan } = yield* ReplayProgress.load(target, admin)
      const offsets = partitions.reduce((sum, partition) => sum + partition.logEnd - beginOf(target, partition), 0n)
      const noted = partitions.reduce((sum, partition) => sum + notedBelow(target, partition).length, 0)
      if (offsets > mostRead || noted > mostNoted) return Number(offsets) + noted
      let records = 0
      for (const progress of partitions) {
        for (const { from, to } of rangesOf(target, progress)) {
          const range = { topic: target.deadLetterTopic, partition: progress.partition, from, to }
          yield* Stream.runForEach(scan.pages(range), (page) =>
            Effect.sync(() => {
              records += TopicScan.unreadableOffsets(page, progress.position)
              for (const record of page.records) {
                const state = ReplayProgress.stateOf(target, progress, record)
                if (state !== "dealt-with" && state !== "foreign") records++
              }
            })
          )
        }
      }
      return records
    })
  )

/** All records below it are dealt with, but for those that the journal names: a custom handler failed for them, or a replay left them. */
const beginOf = (
  { adopts }: ReplayProgress.LimitedTarget,
  { position, logStart }: ReplayProgress.PartitionProgress
): bigint =>
  // A record of an adopted group may be dealt with behind the position of this one, and the other way round.
  adopts.length > 0 ? logStart : position

const notedBelow = (target: ReplayProgress.LimitedTarget, progress: ReplayProgress.PartitionProgress) => {
  const begin = beginOf(target, progress)
  return Array.from(
    new Set([progress.failed, progress.exhausted, progress.refused].flatMap((noted) => [...noted.keys()]))
  )
    .filter((offset) => offset >= progress.logStart && offset < begin)
    .sort((a, b) => (a < b ? -1 : 1))
}

/** The ranges to read: around the records below the position that are not dealt with, and from the position on. Close ones are read as one. */
const rangesOf = (target: ReplayProgress.LimitedTarget, progress: ReplayProgress.PartitionProgress) => {
  const begin = beginOf(target, progress)
  const ranges: Array<{ from: bigint; to: bigint }> = []
  const add = (from: bigint, to: bigint) => {
    const before = ranges.at(-1)
    if (before !== undefined && from - before.to < closeOffsets) before.to = to
    else ranges.push({ from, to })
  }
  for (const offset of notedBelow(target, progress)) add(offset, offset + 1n)
  if (begin < progress.logEnd) add(begin, progress.logEnd)
  return ranges
}
