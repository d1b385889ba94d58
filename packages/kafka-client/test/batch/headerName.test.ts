import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { headerName } from "../../src/internal/batch/headerName.ts"

const read = (bytes: Buffer, index = 0): string => headerName(bytes, 0, bytes.length, index)

describe("names of fetched headers", () => {
  it("are what their UTF-8 says, whatever came before at their position", () => {
    // Few characters and positions, so that names repeat and nearly repeat.
    const character = fc.constantFrom("a", "b", "Ã", "©", "é", "\u0000", "\u007f", "\u0080", "😀")
    const names = fc.array(fc.tuple(fc.string({ unit: character, maxLength: 3 }), fc.nat(2)), { maxLength: 30 })
    fc.assert(
      fc.property(names, (names) => {
        for (const [name, index] of names) assert.strictEqual(read(Buffer.from(name), index), name)
      })
    )
  })

  it("of bytes whose values are the character codes of the name before are decoded", () => {
    read(Buffer.from("Ã©"))
    assert.strictEqual(read(Buffer.from("é")), "é")
    read(Buffer.from("Ã©"))
    assert.strictEqual(read(Buffer.from([0xc3, 0xa9])), "é")
  })

  it("are right behind the 64th header, and above 64 bytes", () => {
    for (const name of ["n".repeat(64), "n".repeat(65), "m".repeat(65), "n".repeat(10_000)]) {
      for (const index of [0, 63, 64, 1_000_000]) assert.strictEqual(read(Buffer.from(name), index), name)
    }
  })

  it("are read at their place in a longer buffer", () => {
    const bytes = Buffer.from("..first..second..")
    assert.strictEqual(headerName(bytes, 2, 5, 0), "first")
    assert.strictEqual(headerName(bytes, 2, 5, 0), "first")
    assert.strictEqual(headerName(bytes, 9, 6, 0), "second")
  })
})
