/**
 * An index of the journal of replays, which may be far larger than a page of dead letters: which blocks of it may mention a letter. A block has the same size in memory however
 * many letters it mentions, so that an index of a whole journal stays small.
 */
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Position } from "../../DeadLetterSelection.ts"
import type { Range } from "../replay/topicScan.ts"

/** Replays take the letters of a partition in order, so a block of the journal mentions letters that lie close together. */
const mostMentions = 500

interface Span {
  low: bigint
  high: bigint
}

interface Block {
  readonly topic: string
  readonly partition: number
  readonly from: bigint
  to: bigint
  mentions: number
  /** The lowest and the highest letter that it mentions, by partition of the dead letter topic. */
  readonly letters: Map<number, Span>
}

export class JournalBlocks {
  readonly #blocks: Array<Block> = []

  /** A record of the journal, in the order of its log, with the letters that it is about. */
  add({ topic, partition, offset }: ConsumerRecord, letters: ReadonlyArray<Position>): void {
    if (letters.length === 0) return
    let block = this.#blocks.at(-1)
    if (block === undefined || block.partition !== partition || block.mentions >= mostMentions) {
      block = { topic, partition, from: offset, to: offset, mentions: 0, letters: new Map() }
      this.#blocks.push(block)
    }
    block.to = offset + 1n
    block.mentions += letters.length
    for (const letter of letters) {
      const span = block.letters.get(letter.partition)
      if (span === undefined) block.letters.set(letter.partition, { low: letter.offset, high: letter.offset })
      else if (letter.offset < span.low) span.low = letter.offset
      else if (letter.offset > span.high) span.high = letter.offset
    }
  }

  /** The parts of the journal that mention all that it says of these letters, in the order of its log. */
  rangesOf(letters: ReadonlyArray<Position>): ReadonlyArray<Range> {
    const isMentioned = ({ letters: spans }: Block) =>
      letters.some(({ partition, offset }) => {
        const span = spans.get(partition)
        return span !== undefined && offset >= span.low && offset <= span.high
      })
    const ranges: Array<{ -readonly [K in keyof Range]: Range[K] }> = []
    let isNext = false
    for (const block of this.#blocks) {
      const last = ranges.at(-1)
      const isWanted = isMentioned(block)
      // One fetch reads neighbours, and what lies between them.
      if (isWanted && isNext && last?.partition === block.partition) last.to = block.to
      else if (isWanted) ranges.push({ topic: block.topic, partition: block.partition, from: block.from, to: block.to })
      isNext = isWanted
    }
    return ranges
  }
}
