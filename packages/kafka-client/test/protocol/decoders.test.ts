/** Every decoder reads what a broker sends, or refuses it by a RangeError, whatever the bytes are. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { codecs } from "../../src/internal/protocol/codecs.ts"
import { Reader } from "../../src/internal/protocol/reader.ts"

const every = Object.values(codecs)

const versionsOf = ({ versions: { min, max } }: (typeof every)[number]) =>
  Array.from({ length: max - min + 1 }, (_, index) => min + index)

/** Small numbers, which make likely lengths, texts, and any bytes. */
const answers = fc
  .array(
    fc.oneof(
      fc.constantFrom([0], [0, 0], [0, 0, 0, 0], [0, 1], [0, 2], [0, 0, 0, 1], [0, 0, 0, 2], [0xff, 0xff]),
      fc.constantFrom([0x7f, 0xff, 0xff, 0xff], [0x80, 0, 0, 0], [0xff, 0xff, 0xff, 0xfe], [0x7f, 0xff], [0x80, 0]),
      fc.array(fc.nat(255), { maxLength: 8 })
    ),
    { maxLength: 40 }
  )
  .map((parts) => Buffer.from(parts.flat()))

/** Whether the bytes were read or refused. Anything but a RangeError is thrown on. */
const outcome = (decode: () => unknown): "read" | "refused" => {
  try {
    decode()
    return "read"
  } catch (error) {
    if (error instanceof RangeError) return "refused"
    throw error
  }
}

describe("CLN-17 the decoder of", () => {
  for (const codec of every) {
    it(`CLN-17 ${codec.name} reads or refuses truncated, flipped and oversized bytes, in bounded memory`, () => {
      const seen = new Set<string>()
      fc.assert(
        fc.property(answers, fc.constantFrom(...versionsOf(codec)), (bytes, version) => {
          seen.add(outcome(() => codec.decode(new Reader(bytes), version)))
        }),
        { numRuns: 2_000 }
      )
      assert.isTrue(seen.has("refused"))
      // Nothing at all, and every length that begins an answer.
      for (const version of versionsOf(codec)) {
        assert.strictEqual(
          outcome(() => codec.decode(new Reader(Buffer.alloc(0)), version)),
          "refused"
        )
      }
    })
  }

  it("CLN-17 an array longer than its bytes is refused before its first element is read", () => {
    const bytes = Buffer.alloc(8)
    bytes.writeInt32BE(2 ** 31 - 1, 0)
    let read = 0
    assert.throws(() => new Reader(bytes).array(() => read++), RangeError)
    assert.strictEqual(read, 0)
  })

  it("CLN-17 a length of more than five bytes is refused", () => {
    assert.throws(() => new Reader(Buffer.alloc(20, 0xff)).unsignedVarint(), RangeError)
  })
})
