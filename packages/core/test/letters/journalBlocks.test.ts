import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Position } from "../../src/DeadLetterSelection.ts"
import { JournalBlocks } from "../../src/internal/letters/journalBlocks.ts"

const journal = "orders.DLT.replays"
const letterAt = (partition: number, offset: number): Position => ({ partition, offset: BigInt(offset) })
const entryAt = (offset: number) => ({
  ...{ topic: journal, partition: 0, offset: BigInt(offset), timestamp: 0, key: null, value: null, headers: [] }
})

/** An index of entries, each of which mentions these letters. */
const blocksOf = (entries: ReadonlyArray<ReadonlyArray<Position>>) => {
  const blocks = new JournalBlocks()
  for (const [offset, letters] of entries.entries()) blocks.add(entryAt(offset), letters)
  return blocks
}

const hundred = (partition: number, from: number) =>
  Array.from({ length: 100 }, (_, index) => letterAt(partition, from + index))

const spans = (blocks: JournalBlocks, ...letters: ReadonlyArray<Position>) =>
  blocks.rangesOf(letters).map(({ from, to }) => [Number(from), Number(to)])

describe("the index of a journal", () => {
  it("OPS-03 of a run over 100 000 letters, what mentions a page of them is a small part", () => {
    const blocks = blocksOf(
      Array.from({ length: 1_000 }, (_, entry) => hundred(entry % 2, Math.floor(entry / 2) * 100))
    )
    const page = Array.from({ length: 50 }, (_, index) => letterAt(index % 2, 49_999 - index))
    assert.deepStrictEqual(spans(blocks, ...page), [[995, 1_000]])
    assert.deepStrictEqual(spans(blocks, letterAt(0, 0), letterAt(1, 49_999)), [
      [0, 5],
      [995, 1_000]
    ])
    assert.deepStrictEqual(spans(blocks, letterAt(0, 50_000), letterAt(2, 0)), [])
    assert.deepStrictEqual(spans(blocks), [])
  })

  it("OPS-03 whatever entries mention, the ranges hold each entry about the letters, in order and once", () => {
    const letters = fc.array(
      fc.tuple(fc.nat(2), fc.nat(40)).map(([partition, offset]) => letterAt(partition, offset)),
      {
        maxLength: 400
      }
    )
    fc.assert(
      fc.property(fc.array(letters, { maxLength: 30 }), letters, (entries, page) => {
        const ranges = spans(blocksOf(entries), ...page)
        const isIn = (offset: number) => ranges.filter(([from, to]) => offset >= from! && offset < to!).length
        for (const [offset, mentioned] of entries.entries()) {
          const isAbout = mentioned.some((one) =>
            page.some((other) => one.partition === other.partition && one.offset === other.offset)
          )
          assert.isAtMost(isIn(offset), 1)
          if (isAbout) assert.strictEqual(isIn(offset), 1)
        }
        const flat = ranges.flat()
        assert.deepStrictEqual(
          flat,
          [...flat].sort((one, other) => one - other)
        )
      })
    )
  })
})
