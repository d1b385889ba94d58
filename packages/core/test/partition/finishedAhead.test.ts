import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as FinishedAhead from "../../src/internal/partition/finishedAhead.ts"

const { format, mostOffsets, parse } = FinishedAhead

describe("what is finished behind a committed offset", () => {
  it("MSG-20 is read as it was written, for every set of offsets", () => {
    fc.assert(
      fc.property(
        fc.bigInt(0n, 2n ** 60n),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 300 }),
        (position, open) => {
          const length = BigInt(open.length)
          const unfinished = open.flatMap((isOpen, index) => (isOpen ? [position + BigInt(index)] : []))
          const read = parse(format(position, position + length, unfinished), position, position + length)
          for (let offset = position; offset < position + length; offset++) {
            assert.strictEqual(read?.has(offset) ?? false, !unfinished.includes(offset))
          }
          assert.isFalse(read?.has(position - 1n) ?? false)
          assert.isFalse(read?.has(position + length) ?? false)
        }
      )
    )
  })

  it("fits in a commit's metadata, however much there is; what does not fit is not told", () => {
    const text = format(2n ** 62n, 2n ** 62n + 1_000_000n, [2n ** 62n])!
    assert.isBelow(text.length, 3_950)
    const read = parse(text, 2n ** 62n, 2n ** 63n - 1n)!
    assert.isTrue(read.has(2n ** 62n + BigInt(mostOffsets) - 1n))
    assert.isFalse(read.has(2n ** 62n + BigInt(mostOffsets)))
  })

  it("says nothing about another offset, another log, or as text of somebody else", () => {
    const text = format(5n, 9n, [5n])
    assert.isTrue(parse(text, 5n, 9n)?.has(8n))
    for (const [found, committed, logEnd] of [
      [text, 6n, 9n],
      [text, 5n, 8n],
      [undefined, 5n, 9n],
      ["5", 5n, 9n],
      ["5:###", 5n, 9n],
      [`5:${"/".repeat(8_000)}`, 5n, 2n ** 62n]
    ] as const) {
      assert.strictEqual(parse(found, committed, logEnd), undefined, `${found} at ${committed}`)
    }
    assert.strictEqual(format(5n, 9n, [5n, 6n, 7n, 8n]), undefined)
  })
})
