/**
 * Reads followers again that are in the source alone. One pass serves every parked key on its way: a restart reads the source once, and not once for each key.
 *
 * A pass begins at the first follower that somebody waits for, and ends where the main topic's own records begin. It stops early when nobody has room for more.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { Broker, Reader } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as BigInts from "../base/bigInts.ts"
import type { Entry } from "./entry.ts"
import { readAgain } from "./readAgain.ts"
import type { Unit } from "./unit.ts"

export interface SourceReaderOptions {
  readonly broker: Broker["Service"]
  /** Whether a record of the source is for this group: a replay for another one is not. */
  readonly isOurs: (record: ConsumerRecord) => boolean
  /** Followers were read again. */
  readonly onRead: (records: number) => void
  /** Followers of parked keys are not in the source any more. */
  readonly onGone: (gone: Gone) => void
}

/** Followers that nobody can read any more. */
export interface Gone {
  /** They were between these offsets of the source; `to` is the offset behind the last one. */
  readonly from: bigint
  readonly to: bigint
  /** Undefined where a former owner has seen them, and it is not known whether there were any. */
  readonly records: number | undefined
  readonly cause: "retention" | "compaction"
  readonly entries: ReadonlyArray<Entry>
}

/** Reads whenever somebody waits for followers, until it is interrupted. */
export const run = Effect.fnUntraced(function* (unit: Unit, options: SourceReaderOptions) {
  const work = Latch.makeUnsafe(unit.table.evicted.size > 0)
  unit.onWork = () => work.openUnsafe()
  const { isolationLevel } = unit.options.definition
  yield* work.await
  const reader = yield* Effect.orDie(Effect.retry(options.broker.reader({ isolationLevel }), readAgain))
  // The first pass is for all of them: the locks of a former owner say where their followers are.
  yield* pass(unit, reader, options, Array.from(unit.table.evicted))
  // The reader is there before somebody needs it: a key that is parked from now on needs nothing.
  unit.onWork = () => {
    if (unit.table.evicted.size > 0) work.openUnsafe()
  }
  while (true) {
    work.closeUnsafe()
    const waiting = Array.from(unit.table.evicted).filter(
      ({ isDraining, followers }) => isDraining && followers.length === 0
    )
    if (waiting.length === 0) yield* work.await
    else yield* pass(unit, reader, options, waiting)
  }
})

const pass = Effect.fnUntraced(function* (
  unit: Unit,
  reader: Reader,
  options: SourceReaderOptions,
  waiting: ReadonlyArray<Entry>
) {
  const starts = waiting.flatMap(({ evictedFrom }) => evictedFrom ?? [])
  if (starts.length === 0) return
  const full = new Set<Entry>()
  const { topic, partition } = unit.options.main
  let at = starts.reduce((least, each) => BigInts.min(each, least))
  let hasGap = false
  if (at >= unit.table.mainPosition) advance(unit, at, at, full)
  while (at < unit.table.mainPosition && !unit.stopping && isWanted(unit, at, full)) {
    const found = yield* Effect.orDie(Effect.retry(reader.read({ topic, partition, offset: at }), readAgain))
    if (found._tag === "Fetched") {
      const { records, nextOffset } = found.chunk
      options.onRead(serve(unit, at, records, full, options))
      if (nextOffset === at) yield* Effect.sleep("100 millis")
      at = advance(unit, at, nextOffset, full)
    } else {
      const to = found._tag === "Unreadable" ? found.lastOffset + 1n : found.logStart
      if (found._tag === "OutOfRange" && to > at) {
        hasGap = true
        reportGap(unit, at, to, options)
      }
      at = advance(unit, at, to > at ? to : unit.table.mainPosition, full)
    }
  }
  reportMissing(unit, hasGap, options)
})

/** Retention has passed offsets. Followers that this owner has seen are counted once the source is read to its end; of those before its time nothing is known. */
const reportGap = ({ table }: Unit, from: bigint, to: bigint, { onGone }: SourceReaderOptions): void => {
  const entries = Array.from(table.evicted).filter(
    ({ evictedFrom = to }) => evictedFrom >= from && evictedFrom < to && table.isOfFormerOwner(evictedFrom)
  )
  if (entries.length > 0) onGone({ from, to, records: undefined, cause: "retention", entries })
}

/** Followers that were seen once, and were not found again. */
const reportMissing = ({ table }: Unit, hasGap: boolean, { onGone }: SourceReaderOptions): void => {
  const missing = table.missing.splice(0)
  if (missing.length === 0) return
  const entries = missing.map(({ entry }) => entry)
  onGone({
    // The lock of a key may have moved on meanwhile.
    from: missing.reduce((least, { from }) => BigInts.min(least, from), missing[0]!.from),
    to: table.mainPosition,
    records: missing.reduce((sum, { records }) => sum + records, 0),
    cause: hasGap ? "retention" : "compaction",
    entries
  })
}

/** Whether a key has room for followers from here on. */
const isWanted = (unit: Unit, at: bigint, full: ReadonlySet<Entry>): boolean => {
  for (const entry of unit.table.evicted) if (entry.evictedFrom! >= at && !full.has(entry)) return true
  return false
}

/** Hands records to the keys that they follow. A key whose followers begin before this part of the source gets none of it. */
const serve = (
  unit: Unit,
  from: bigint,
  records: ReadonlyArray<ConsumerRecord>,
  full: Set<Entry>,
  { isOurs }: SourceReaderOptions
): number => {
  const end = unit.table.mainPosition
  let served = 0
  for (const record of records) {
    if (record.offset >= end) break
    const entry = record.key === null ? undefined : unit.table.get(record.key)
    const first = entry?.evictedFrom
    if (entry === undefined || first === undefined || first < from || record.offset < first || full.has(entry)) continue
    if (!isOurs(record)) continue
    if (!unit.table.remembered(entry, record)) full.add(entry)
    else {
      entry.evictedFrom = record.offset + 1n
      entry.evictedMillis = undefined
      served++
    }
  }
  return served
}

/** Everything below `to` was looked at. Answers where the pass goes on. */
const advance = (unit: Unit, from: bigint, to: bigint, full: ReadonlySet<Entry>): bigint => {
  const end = to < unit.table.mainPosition ? to : unit.table.mainPosition
  for (const entry of Array.from(unit.table.evicted)) {
    const first = entry.evictedFrom!
    const isRead = first < end || end >= unit.table.mainPosition
    if (first >= from && !full.has(entry) && isRead) unit.table.readTo(entry, BigInts.max(first, end))
    if (entry.followers.length > 0 || entry.evictedFrom === undefined) entry.onRead()
  }
  return end
}
