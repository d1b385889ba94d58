import { assert, describe, it } from "@effect/vitest"
import { encodedName } from "../../src/internal/batch/encodedName.ts"

const isKept = (name: string): boolean => {
  const first = encodedName(name)
  return encodedName(name) === first
}

describe("encoded names of headers", () => {
  it("are in UTF-8, behind their length", () => {
    assert.deepStrictEqual([...encodedName("né")], [6, 0x6e, 0xc3, 0xa9])
  })

  it("are encoded once, if they have up to 128 characters", () => {
    assert.isTrue(isKept("x-retry-attempt"))
    assert.isTrue(isKept("n".repeat(128)))
  })

  it("NFR-06 are not kept when they are longer", () => {
    assert.isFalse(isKept("n".repeat(129)))
    assert.isFalse(isKept("n".repeat(100_000)))
  })

  it("NFR-06 are not kept when there are more than 500", () => {
    const first = encodedName("first")
    for (let index = 0; index < 500; index++) encodedName(`other-${index}`)
    const again = encodedName("first")
    assert.notStrictEqual(again, first)
    assert.deepStrictEqual(again, first)
  })
})
