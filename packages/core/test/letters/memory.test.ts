import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"

const program = fileURLToPath(new URL("./largeLetters.ts", import.meta.url))

describe("dead letters with large values", () => {
  it("OPS-03 OPS-05 50 000 with 2 GB of values and a journal of 400 MB are grouped, listed and rehearsed in a heap of 96 MB", () => {
    const { stdout, stderr, status } = spawnSync(process.execPath, ["--max-old-space-size=96", program], {
      encoding: "utf8"
    })
    assert.strictEqual(status, 0, stderr)
    const { megabytes, ...counts } = JSON.parse(stdout)
    assert.deepStrictEqual(counts, { groups: 40, counted: 50_000, page: 50, replayed: 50, passes: 50_000 })
    assert.isBelow(megabytes, 450)
  }, 120_000)
})
