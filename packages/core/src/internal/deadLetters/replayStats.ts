/**
 * Counts the records of a dead letter topic, and deletes old ones (connector seed §4.7, rulings 32 and 61).
 */
import { Effect, Stream } from "effect"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import { ForeignDeadLetters, type ListedDeadLetter, NotPurgeable, type PurgeOptions, type Stats } from "../../Replay.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as ReplayProgress from "./replayProgress.ts"
import * as TopicScan from "./topicScan.ts"

const maxNames = 200

/** Counts the records of the group that are not dealt with, and those of other groups. Reads the whole topic. */
export const stats = Effect.fnUntraced(function* (
  target: ReplayProgress.LimitedTarget
): Effect.fn.Return<Stats, BrokerError> {
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const admin = yield* target.broker.admin
      const { partitions, scan } = yield* ReplayProgress.load(target, admin)
      const tally = new Tally()
      for (const partition of partitions) {
        const range = {
          ...{ topic: target.deadLetterTopic, partition: partition.partition },
          ...{ from: partition.logStart, to: partition.logEnd }
        }
        yield* Stream.runForEach(scan.pages(range), (page) =>
          Effect.sync(() => {
            tally.addUnreadable(page, partition.position)
            for (const record of page.records)
              tally.add(record, target, ReplayProgress.stateOf(target, partition, record))
          })
        )
      }
      return tally
    })
  )
})

class Tally implements Stats {
  count = 0
  failed = 0
  exhausted = 0
  unreadable = 0
  stored = 0
  oldestMillis: number | undefined
  newestMillis: number | undefined
  readonly byExceptionClass = new Map<string, number>()
  readonly foreign = new Map<string, number>()

  /** Nobody knows the records of an unreadable batch, so they count as far as the position has not passed them. */
  addUnreadable(page: TopicScan.Page, position: bigint): void {
    const waiting = TopicScan.unreadableOffsets(page, position)
    this.unreadable += waiting
    this.count += waiting
    this.stored += TopicScan.unreadableOffsets(page, 0n)
  }

  add(record: ConsumerRecord, groups: CopyOwner.Groups, state: ListedDeadLetter["state"]): void {
    if (state === "foreign") countIn(this.foreign, CopyOwner.foreign(record, groups)!)
    else this.stored++
    if (state === "foreign" || state === "dealt-with") return
    if (state === "failed") this.failed++
    if (state === "exhausted") this.exhausted++
    const { dltTimestamp, lastExceptionClass } = DeadLetterRecord.read(record)
    this.count++
    this.oldestMillis = Math.min(this.oldestMillis ?? dltTimestamp, dltTimestamp)
    this.newestMillis = Math.max(this.newestMillis ?? dltTimestamp, dltTimestamp)
    countIn(this.byExceptionClass, lastExceptionClass)
  }
}

/** Counts under a name, or under `other` when there are many names already: headers are untrusted input. */
const countIn = (counts: Map<string, number>, name: string): void => {
  const counted = counts.has(name) || counts.size < maxNames ? name : "other"
  counts.set(counted, (counts.get(counted) ?? 0) + 1)
}

/**
 * Deletes records that were dead-lettered before `beforeMillis` and answers how many. Kafka deletes only prefixes of partitions, so an old record behind a younger
 * one stays, and a record of another group refuses the purge (ruling 71). Nobody knows how old the records of an unreadable batch are, and whose, so the purge ends
 * before it, unless the operator has it deleted.
 */
export const purge = Effect.fnUntraced(function* (
  target: ReplayProgress.Target,
  beforeMillis: number,
  { deleteUnreadable = false }: PurgeOptions = {}
): Effect.fn.Return<number, BrokerError | NotPurgeable | ForeignDeadLetters> {
  const { broker, deadLetterTopic, maxBufferedBytes } = target
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const admin = yield* broker.admin
      const logOffsets = yield* Effect.catchTag(admin.topicOffsets(deadLetterTopic), "UnknownTopic", () =>
        Effect.succeed([])
      )
      if (logOffsets.length === 0) return 0
      const cleanupPolicy = (yield* admin.topicConfig(deadLetterTopic)).get("cleanup.policy") ?? "delete"
      if (!cleanupPolicy.split(",").some((policy) => policy.trim() === "delete")) {
        return yield* new NotPurgeable({ topic: deadLetterTopic, cleanupPolicy })
      }
      const scan = yield* TopicScan.open({ broker, admin, maxRecordBytes: maxBufferedBytes })
      const foreign = new Map<string, number>()
      const prefixes = yield* Effect.forEach(logOffsets, ({ partition, logStart, logEnd }) => {
        const range = { topic: deadLetterTopic, partition, from: logStart, to: logEnd }
        const onOld = (record: ConsumerRecord) => {
          const owner = CopyOwner.foreign(record, target)
          if (owner !== undefined) countIn(foreign, owner)
        }
        const prefix = oldPrefix(scan, range, { beforeMillis, deleteUnreadable, onOld })
        return Effect.map(prefix, (found) => ({ partition, ...found }))
      })
      if (foreign.size > 0) {
        return yield* new ForeignDeadLetters({ topic: deadLetterTopic, owners: Object.fromEntries(foreign) })
      }
      const old = prefixes.filter(({ count }) => count > 0)
      if (old.length > 0) yield* admin.deleteRecords(deadLetterTopic, old)
      return old.reduce((sum, { count }) => sum + count, 0)
    })
  )
})

interface Old {
  readonly beforeMillis: number
  readonly deleteUnreadable: boolean
  readonly onOld: (record: ConsumerRecord) => void
}

/** Counts the old records at the start of the range, and answers the offset after them. */
const oldPrefix = Effect.fnUntraced(function* (
  scan: TopicScan.TopicScan,
  range: TopicScan.Range,
  { beforeMillis, deleteUnreadable, onOld }: Old
) {
  let count = 0
  let before = range.from
  yield* Stream.runForEachWhile(scan.pages(range), (page) =>
    Effect.gen(function* () {
      if (page.unreadable !== undefined && !deleteUnreadable) {
        yield* Effect.logWarning(`A purge ended before ${TopicScan.textOf(page.unreadable)}`)
        return false
      }
      count += TopicScan.unreadableOffsets(page, range.from)
      for (const record of page.records) {
        if (!(DeadLetterRecord.read(record).dltTimestamp < beforeMillis)) return false
        count++
        onOld(record)
        before = record.offset + 1n
      }
      before = page.nextOffset
      return true
    })
  )
  return { count, before }
})
