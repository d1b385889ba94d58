/**
 * One partition of a dead letter topic, read from its end towards its beginning. Kafka reads forwards only, so a block of offsets is read at a time.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { BrokerError } from "../../BrokerError.ts"
import * as BigInts from "../base/bigInts.ts"
import type { PartitionProgress } from "../replay/replayProgress.ts"
import type * as TopicScan from "../replay/topicScan.ts"
import { type LettersTarget, ofUnreadable, read, type StatedLetter, wholeOf } from "./lettersTarget.ts"
import * as Summaries from "./summaries.ts"

/** Most offsets of one block. */
const largestBlock = 512n

/** How much a page may still read. */
export interface Budget {
  records: number
  bytes: number
}

/** A dead letter that the page may have next. */
interface Entry {
  readonly summary: Summaries.Shown
  /** When it was dead-lettered. A batch that cannot be read has no time, and comes at once. */
  readonly millis: number
}

/** The parts that all partitions of a page have in common. */
export interface Reading {
  readonly scan: TopicScan.TopicScan
  readonly target: LettersTarget
  readonly matches: (stated: StatedLetter) => boolean
  readonly budget: Budget
}

/** The letters that were read of a block. */
interface Block {
  readonly entries: Array<Entry>
  /** Everything from here on is read with it. */
  reached: bigint
  oldestMillis: number | undefined
  records: number
  /** Of keys and values. */
  bytes: number
}

export class PartitionTail {
  /** Read, not shown yet; the oldest first. */
  readonly #entries: Array<Entry> = []
  readonly #progress: PartitionProgress
  /** Everything from here on has been read. */
  #from: bigint
  #block: bigint
  /** The time of the oldest record that was read: those before it are about as old, or older. Nothing is known before the first block. */
  #reachedMillis = Number.POSITIVE_INFINITY

  constructor(progress: PartitionProgress, before: bigint, firstBlock: number) {
    this.#progress = progress
    const { logStart, logEnd } = progress
    this.#from = BigInts.max(BigInts.min(before, logEnd), logStart)
    this.#block = BigInt(firstBlock)
  }

  /** Whether there is nothing left to read. */
  get isRead(): boolean {
    return this.#from <= this.#progress.logStart
  }

  /** When the next dead letter was dead-lettered, or can have been at the latest; `-Infinity` without one. */
  get nextMillis(): number {
    return this.#entries.at(-1)?.millis ?? (this.isRead ? Number.NEGATIVE_INFINITY : this.#reachedMillis)
  }

  /** The offset below which nothing was shown. */
  get shownFrom(): bigint {
    const next = this.#entries.at(-1)
    return next === undefined ? this.#from : next.summary.offset + 1n
  }

  /** The newest that was read and not shown. */
  take(): Summaries.Shown | undefined {
    return this.#entries.pop()?.summary
  }

  /**
   * Reads the next block. Call it only when nothing is left to take. The first letters of a block tell how large letters are here: of large ones a shorter block is read, of about
   * `mostBytes`, and of one letter at least.
   */
  refill(reading: Reading, mostBytes: number): Effect.Effect<void, BrokerError> {
    return Effect.suspend(() => {
      const whole = wholeOf(reading.target, this.#progress)
      const range = { ...whole, from: BigInts.max(this.#from - this.#block, whole.from), to: this.#from }
      const block: Block = { entries: [], reached: range.from, oldestMillis: undefined, records: 0, bytes: 0 }
      let shorter: bigint | undefined
      const pages = Stream.runForEachWhile(reading.scan.pages(range), (page) =>
        Effect.sync(() => {
          this.#read(reading, block, page)
          shorter = shorterThan(range, page.nextOffset, block, mostBytes)
          return shorter === undefined
        })
      )
      return Effect.andThen(
        pages,
        Effect.suspend(() => {
          if (shorter === undefined) return Effect.sync(() => this.#take(block))
          this.#block = shorter
          return this.refill(reading, mostBytes)
        })
      )
    })
  }

  /** Notes what a page has. */
  #read({ target, matches, budget }: Reading, block: Block, { records, unreadable }: TopicScan.Page): void {
    if (unreadable !== undefined) {
      const stated = ofUnreadable(unreadable)
      const summary = { ...Summaries.of(stated), unreadable }
      if (matches(stated)) block.entries.push({ summary, millis: Number.POSITIVE_INFINITY })
      // A block that begins in the middle of the batch shows the whole of it.
      block.reached = BigInts.min(block.reached, BigInts.max(unreadable.offset, this.#progress.logStart))
    }
    for (const record of records) {
      const stated = read(target, this.#progress, record)
      const millis = stated.letter.dltTimestamp
      const bytes = (record.key?.length ?? 0) + (record.value?.length ?? 0)
      block.oldestMillis ??= millis
      block.records++
      block.bytes += bytes
      budget.records--
      budget.bytes -= bytes
      if (matches(stated)) block.entries.push({ summary: Summaries.of(stated), millis })
    }
  }

  #take({ entries, reached, oldestMillis }: Block): void {
    this.#entries.push(...entries)
    this.#from = reached
    this.#block = BigInts.min(this.#block * 2n, largestBlock)
    this.#reachedMillis = oldestMillis ?? this.#reachedMillis
  }
}

/** How long a block is that takes about `mostBytes`; undefined where this one does, by what was read of it. */
const shorterThan = (
  { from, to }: TopicScan.Range,
  nextOffset: bigint,
  { records, bytes }: Block,
  mostBytes: number
): bigint | undefined => {
  if (records === 0 || nextOffset >= to) return undefined
  const perLetter = bytes / records
  if (bytes + perLetter * Number(to - nextOffset) <= mostBytes) return undefined
  const length = BigInt(Math.max(1, Math.floor(mostBytes / perLetter)))
  return length < to - from ? length : undefined
}
