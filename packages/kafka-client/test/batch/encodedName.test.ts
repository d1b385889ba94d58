import { assert, describe, it } from "@effect/vitest"
import { encodedName } from "../../src/internal/batch/encodedName.ts"

const isCached = (name: string): boolean => {
  const first = encodedName(name)
  return encodedName(name) === first
}

describe("encoded names of headers", () => {
  it("are in UTF-8, after their length", () => {
    assert.deepStrictEqual([...encodedName("né")], [6, 0x6e, 0xc3, 0xa9])
  })

  it("are encoded once, up to 128 characters", () => {
    assert.isTrue(isCached("x-retry-attempt"))
    assert.isTrue(isCached("n".repeat(128)))
  })

  it("NFR-06 are not cached above 128 characters", () => {
    assert.isFalse(isCached("n".repeat(129)))
    assert.isFalse(isCached("n".repeat(100_000)))
  })

  it("NFR-06 are cached up to 500 of them", () => {
    const first = encodedName("first")
    for (let index = 0; index < 500; index++) encodedName(`other-${index}`)
    const again = encodedName("first")
    assert.notStrictEqual(again, first)
    assert.deepStrictEqual(again, first)
  })
})
