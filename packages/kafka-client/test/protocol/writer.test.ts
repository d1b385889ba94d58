/** The writer and the reader are each other's inverse. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Reader } from "../../src/internal/protocol/reader.ts"
import { Writer } from "../../src/internal/protocol/writer.ts"
import { headerRoom } from "../../src/Transport.ts"

const text = fc.string({ maxLength: 400, unit: "grapheme" })

describe("what was written", () => {
  it("is read as it was, also where the buffer had to grow", () =>
    fc.assert(
      fc.property(
        fc.array(text),
        fc.option(text, { nil: null }),
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        fc.nat(2 ** 31 - 1),
        (texts, nullable, long, length) => {
          const writer = new Writer()
          writer.strings(texts).nullableString(nullable).int64(long).unsignedVarint(length)
          writer.compactArray(texts, (each) => writer.compactString(each)).noTags()
          const { bytes, whole } = writer.body
          const reader = new Reader(bytes)
          assert.deepStrictEqual(
            reader.array(() => reader.string()),
            texts
          )
          assert.strictEqual(reader.nullableString(), nullable)
          assert.strictEqual(reader.int64(), long)
          assert.strictEqual(reader.unsignedVarint(), length)
          assert.deepStrictEqual(
            reader.compactArray(() => reader.compactString()),
            texts
          )
          reader.tags()
          assert.strictEqual(reader.rest().length, 0)
          assert.strictEqual(whole?.length, headerRoom + bytes.length)
        }
      )
    ))
})
