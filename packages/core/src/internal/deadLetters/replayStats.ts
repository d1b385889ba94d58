/**
 * Counts the records of a dead letter topic, and deletes old ones (connector seed §4.7, rulings 32 and 61).
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { Admin } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import {
  ForeignDeadLetters,
  type InvalidArgument,
  type ListedDeadLetter,
  NotPurgeable,
  type PurgeOptions,
  type Stats
} from "../../Replay.ts"
import * as LogLine from "../base/logLine.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as Arguments from "../replay/arguments.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as TopicScan from "../replay/topicScan.ts"

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
  options: PurgeOptions = {}
): Effect.fn.Return<number, BrokerError | NotPurgeable | ForeignDeadLetters | InvalidArgument> {
  const { deleteUnreadable = false } = yield* Arguments.options("purge", "options", options, ["deleteUnreadable"])
  yield* Arguments.flag("purge", "deleteUnreadable", deleteUnreadable)
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
      const old = { beforeMillis, deleteUnreadable }
      const prefixes = yield* Effect.forEach(logOffsets, ({ partition, logStart, logEnd }) =>
        oldPrefix(scan, { topic: deadLetterTopic, partition, from: logStart, to: logEnd }, old, target)
      )
      const owners = new Map<string, number>()
      for (const { foreign } of prefixes)
        for (const [owner, records] of foreign) owners.set(owner, (owners.get(owner) ?? 0) + records)
      if (owners.size > 0) {
        return yield* new ForeignDeadLetters({ topic: deadLetterTopic, owners: Object.fromEntries(owners) })
      }
      const found = prefixes.filter(({ count }) => count > 0)
      if (found.length === 0) return 0
      const recount = (range: TopicScan.Range) => oldPrefix(scan, range, old, target)
      return yield* turnOf(admin.clusterId, deadLetterTopic).withPermits(1)(remove(admin, found, recount))
    })
  )
})

/** The purges of this process that are ready to delete, by cluster and topic. Each deletes after the one before, so that none reports what another has deleted. */
const turns = new Map<string, Semaphore.Semaphore>()

const turnOf = (clusterId: string, topic: string): Semaphore.Semaphore => {
  const key = `${clusterId}/${topic}`
  const turn = turns.get(key) ?? Semaphore.makeUnsafe(1)
  turns.set(key, turn)
  return turn
}

/** Deletes the prefixes and answers how many records that deleted: those that somebody else has deleted since they were counted are not among them. */
const remove = Effect.fnUntraced(function* (
  admin: Admin,
  prefixes: ReadonlyArray<Prefix>,
  recount: (range: TopicScan.Range) => Effect.Effect<Prefix, BrokerError>
) {
  const topic = prefixes[0]!.range.topic
  let current = prefixes
  while (true) {
    const starts = new Map((yield* admin.topicOffsets(topic)).map(({ partition, logStart }) => [partition, logStart]))
    const moved = (each: Prefix) => (starts.get(each.range.partition) ?? each.range.from) > each.range.from
    if (!current.some(moved)) break
    current = yield* Effect.forEach(current, (each) => {
      if (!moved(each)) return Effect.succeed(each)
      const from = starts.get(each.range.partition)!
      return from < each.before ? recount({ ...each.range, from, to: each.before }) : Effect.succeed(gone(each, from))
    })
  }
  const left = current.filter(({ count }) => count > 0)
  if (left.length === 0) return 0
  yield* admin.deleteRecords(
    topic,
    left.map(({ range, before }) => ({ partition: range.partition, before }))
  )
  return left.reduce((sum, { count }) => sum + count, 0)
})

/** Nothing of the prefix is left. */
const gone = (prefix: Prefix, logStart: bigint): Prefix => ({
  ...prefix,
  range: { ...prefix.range, from: logStart },
  count: 0
})

/** The old records at the start of a range. */
interface Prefix {
  readonly range: TopicScan.Range
  readonly count: number
  /** The offset after them. */
  readonly before: bigint
  /** Those of other groups, by group. */
  readonly foreign: ReadonlyMap<string, number>
}

interface Old {
  readonly beforeMillis: number
  readonly deleteUnreadable: boolean
}

/** Counts the old records at the start of the range, and answers the offset after them. */
const oldPrefix = Effect.fnUntraced(function* (
  scan: TopicScan.TopicScan,
  range: TopicScan.Range,
  { beforeMillis, deleteUnreadable }: Old,
  groups: CopyOwner.Groups
) {
  let count = 0
  let before = range.from
  const foreign = new Map<string, number>()
  yield* Stream.runForEachWhile(scan.pages(range), (page) =>
    Effect.gen(function* () {
      if (page.unreadable !== undefined && !deleteUnreadable) {
        yield* LogLine.warning(`A purge ended before ${TopicScan.textOf(page.unreadable)}`)
        return false
      }
      count += TopicScan.unreadableOffsets(page, range.from)
      for (const record of page.records) {
        if (!(DeadLetterRecord.read(record).dltTimestamp < beforeMillis)) return false
        count++
        const owner = CopyOwner.foreign(record, groups)
        if (owner !== undefined) countIn(foreign, owner)
        before = record.offset + 1n
      }
      before = page.nextOffset
      return true
    })
  )
  return { range, count, before, foreign }
})
