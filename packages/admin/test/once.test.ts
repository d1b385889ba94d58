/** OPS-18 in the console: a change whose answer got lost is sent again, with one key. */
import { assert, describe, it } from "@effect/vitest"
import { once } from "../console/data/once.ts"

/** Loses this many answers. */
const losing = (lost: number) => {
  const keys: Array<string> = []
  const send = async (key: string) => {
    keys.push(key)
    if (keys.length <= lost) throw new TypeError("Failed to fetch")
    return "done"
  }
  return { keys, send }
}

describe("OPS-18 a change of the console", () => {
  it("is sent again with the same key until it has an answer, and another change has another key", async () => {
    const { keys, send } = losing(2)
    assert.strictEqual(await once(send, [0, 0]), "done")
    assert.deepStrictEqual([keys.length, new Set(keys).size], [3, 1])
    assert.match(keys[0]!, /^[0-9a-f]{32}$/)
    await once(send, [0, 0])
    assert.strictEqual(new Set(keys).size, 2)
  })

  it("fails when no answer comes", async () => {
    const { keys, send } = losing(9)
    const failed = await once(send, [0, 0]).catch((error: unknown) => error)
    assert.instanceOf(failed, TypeError)
    assert.strictEqual(keys.length, 3)
  })
})
