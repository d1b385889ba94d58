/**
 * The records of a partition that wait for due times of their own: a heap by due time, and the offsets that are finished behind a record that still waits.
 *
 * A record begins in the offset tracker when it comes here, in the order of the offsets. It is handed over, and finished, in the order of the due times: the committed offset
 * stays at the first record that waits. The number of records that wait is bounded by the partition's share of the buffer, like that of all fetched records; how far the
 * finished ones are ahead is bounded by what a commit can say about them (`finishedAhead.ts`).
 */
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { TierTopic } from "../retry/tiers.ts"
import * as FinishedAhead from "./finishedAhead.ts"
import * as OffsetTracker from "./offsetTracker.ts"
import type { PartitionOptions } from "./partitionOptions.ts"

/** A record that waits. */
export interface DueRecord {
  readonly record: ConsumerRecord
  /** When it is due, by the clock of the one who adds it, in milliseconds. */
  readonly dueMillis: number
  /** Its share of the bytes of its chunk. */
  readonly bytes: number
}

type Start = Pick<PartitionOptions, "tier" | "finishedAhead" | "position" | "committed" | "logEnd">

export class DueRecords {
  /** Undefined for a partition whose records are due in the order of their offsets. A former owner may have had other settings: what it has finished is not repeated. */
  static of({ tier, finishedAhead, position, committed, logEnd }: Start): DueRecords | undefined {
    if (tier === undefined) return undefined
    const before = FinishedAhead.parse(finishedAhead, committed, logEnd)
    return tier.delaysMillis.length > 1 || before !== undefined ? new DueRecords(tier, position, before) : undefined
  }

  readonly tier: TierTopic
  /** The tracker of the partition. It is never full: the intake has a bound of its own, and a full tracker would hold up records that are due. */
  readonly tracker: OffsetTracker.OffsetTracker
  /** The former owner had finished these behind its last commit. */
  readonly #before: FinishedAhead.FinishedAhead | undefined
  /** A binary heap: no record is due before its parent. */
  readonly #heap: Array<DueRecord> = []
  readonly #sequences = new WeakMap<ConsumerRecord, number>()
  /** The records in the heap. */
  readonly #waiting = new Set<ConsumerRecord>()

  constructor(tier: TierTopic, position: bigint, before: FinishedAhead.FinishedAhead | undefined) {
    this.tier = tier
    this.tracker = OffsetTracker.make(position, { maxSpan: Number.POSITIVE_INFINITY })
    this.#before = before
  }

  /** Records that wait. */
  get size(): number {
    return this.#heap.length
  }

  /** Whether the former owner has finished the record: it begins and is finished at once. */
  wasFinished(record: ConsumerRecord): boolean {
    if (this.#before?.has(record.offset) !== true) return false
    this.tracker.finish(this.tracker.begin(record))
    return true
  }

  /** Whether a commit could not say any more that this record is finished. It waits in its chunk until the records in front are finished. */
  isTooFar(record: ConsumerRecord): boolean {
    const oldest = this.tracker.oldest()
    return oldest !== undefined && record.offset - oldest.offset >= FinishedAhead.mostOffsets
  }

  add(due: DueRecord): void {
    this.#sequences.set(due.record, this.tracker.begin(due.record))
    this.#waiting.add(due.record)
    const heap = this.#heap
    let index = heap.length
    heap.push(due)
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(due, heap[parent]!)) break
      heap[index] = heap[parent]!
      index = parent
    }
    heap[index] = due
  }

  /** The number of a record in the tracker; undefined for one that did not wait here. */
  sequenceOf(record: ConsumerRecord): number | undefined {
    return this.#sequences.get(record)
  }

  /** When the next record is due; infinite when none waits. */
  get nextMillis(): number {
    return this.#heap[0]?.dueMillis ?? Number.POSITIVE_INFINITY
  }

  /** Takes out the records that are due, by due time and then by offset; `most` at most. */
  takeDue(nowMillis: number, most: number): ReadonlyArray<DueRecord> {
    const due: Array<DueRecord> = []
    while (due.length < most && this.nextMillis <= nowMillis) {
      const first = this.#takeFirst()
      this.#waiting.delete(first.record)
      due.push(first)
    }
    return due
  }

  #takeFirst(): DueRecord {
    const heap = this.#heap
    const first = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return first
    let index = 0
    while (true) {
      const left = 2 * index + 1
      if (left >= heap.length) break
      const child = left + 1 < heap.length && isBefore(heap[left + 1]!, heap[left]!) ? left + 1 : left
      if (!isBefore(heap[child]!, last)) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = last
    return first
  }

  /** Records that are finished behind one that is not. */
  get finishedAhead(): number {
    return this.tracker.span() - this.tracker.inFlight()
  }

  /** Whether the position stays where it is because the record there waits for its due time. */
  get holdsOldest(): boolean {
    const oldest = this.tracker.oldest()
    return oldest !== undefined && this.#waiting.has(oldest)
  }

  /** Tells the next owner which records are finished behind the committed offset; undefined when none is. */
  get finishedText(): string | undefined {
    const { tracker } = this
    const position = tracker.position()
    const begunTo = tracker.begunTo() ?? position
    const unfinished = tracker.unfinished().map(({ offset }) => offset)
    const before = this.#before
    if (before === undefined || before.end <= begunTo) return FinishedAhead.format(position, begunTo, unfinished)
    // Not all that the former owner has finished is fetched again.
    for (let offset = begunTo; offset < before.end; offset++) if (!before.has(offset)) unfinished.push(offset)
    return FinishedAhead.format(position, before.end, unfinished)
  }
}

const isBefore = (a: DueRecord, b: DueRecord): boolean =>
  a.dueMillis < b.dueMillis || (a.dueMillis === b.dueMillis && a.record.offset < b.record.offset)
