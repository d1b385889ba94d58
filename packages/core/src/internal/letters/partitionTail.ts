/**
 * One partition of a dead letter topic, read from its end towards its beginning. Kafka reads forwards only, so a block of offsets is read at a time.
 */
import { Effect, Stream } from "effect"
import type { UnreadableBatch } from "../../Broker.ts"
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

  /** Reads the next block. Call it only when nothing is left to take. */
  readonly refill = (
    scan: TopicScan.TopicScan,
    target: LettersTarget,
    matches: (stated: StatedLetter) => boolean,
    budget: Budget
  ): Effect.Effect<void, BrokerError> =>
    Effect.suspend(() => {
      const whole = wholeOf(target, this.#progress)
      const to = this.#from
      const from = BigInts.max(to - this.#block, whole.from)
      let reached = from
      let oldestMillis: number | undefined
      const range = { ...whole, from, to }
      return Stream.runForEach(scan.pages(range), ({ records, unreadable }) =>
        Effect.sync(() => {
          if (unreadable !== undefined) {
            this.#addUnreadable(unreadable, matches)
            // A block that begins in the middle of the batch shows the whole of it.
            reached = BigInts.min(reached, BigInts.max(unreadable.offset, whole.from))
          }
          for (const record of records) {
            const stated = read(target, this.#progress, record)
            const millis = stated.letter.dltTimestamp
            oldestMillis ??= millis
            budget.records--
            budget.bytes -= (record.key?.length ?? 0) + (record.value?.length ?? 0)
            if (matches(stated)) this.#entries.push({ summary: Summaries.of(stated), millis })
          }
        })
      ).pipe(
        Effect.andThen(
          Effect.sync(() => {
            this.#from = reached
            this.#block = BigInts.min(this.#block * 2n, largestBlock)
            this.#reachedMillis = oldestMillis ?? this.#reachedMillis
          })
        )
      )
    })

  #addUnreadable(unreadable: UnreadableBatch, matches: (stated: StatedLetter) => boolean): void {
    const stated = ofUnreadable(unreadable)
    if (!matches(stated)) return
    this.#entries.push({ summary: { ...Summaries.of(stated), unreadable }, millis: Number.POSITIVE_INFINITY })
  }
}
