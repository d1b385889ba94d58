/** Parked keys by their bytes. */
import { assert, describe, it } from "@effect/vitest"
import { Entry } from "../../src/internal/order/entry.ts"
import { KeyIndex } from "../../src/internal/order/keyIndex.ts"

const keyOf = (number: number) => new Uint8Array(new Uint32Array([number]).buffer)
const entryOf = (number: number) => new Entry(String(number), keyOf(number), 0n, 1, 1, 0)

describe("key index", () => {
  // Of 150,000 keys with hashes of 32 bits, two share one almost surely; both have to be found.
  it("finds each of many keys, and no key that is not there", () => {
    const index = new KeyIndex()
    const count = 150_000
    for (let number = 0; number < count; number++) index.add(entryOf(number))
    assert.strictEqual(index.size, count)
    for (let number = 0; number < count; number++) {
      if (index.get(keyOf(number))?.key !== String(number)) assert.fail(`${number} is not found`)
    }
    for (let number = count; number < 2 * count; number++) {
      if (index.get(keyOf(number)) !== undefined) assert.fail(`${number} is found`)
    }
    for (const entry of [...index.values()]) index.delete(entry)
    assert.strictEqual(index.size, 0)
    assert.isUndefined(index.get(keyOf(0)))
  })

  it("an entry takes the place of one with the same key, and stays when that is deleted", () => {
    const index = new KeyIndex()
    const [before, after] = [entryOf(1), entryOf(1)]
    index.add(before)
    index.add(after)
    assert.strictEqual(index.size, 1)
    index.delete(before)
    assert.strictEqual(index.get(keyOf(1)), after)
  })
})
