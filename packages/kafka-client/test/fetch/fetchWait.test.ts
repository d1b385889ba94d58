import { assert, describe, it } from "@effect/vitest"
import { fetchWaitMillis } from "../../src/internal/fetch/fetchWait.ts"
import { Ownership } from "../../src/internal/group/ownership.ts"

const at = (partition: number) => ({ topic: "t", partition })

/** The wait of a fetch of two partitions at 1,000 ms, with `maxMillis` of 100 ms. */
const waitAfter = (change: (ownership: Ownership) => void, maxMillis = 100) => {
  const ownership = new Ownership()
  for (const owned of ownership.assign(1, [at(0), at(1)]).added) owned.phase = "waiting"
  ownership.seek(at(0), 0n)
  ownership.seek(at(1), 0n)
  change(ownership)
  return fetchWaitMillis(ownership.all(), maxMillis, 1_000)
}

describe("the wait of a fetch", () => {
  it("is Kafka's default, or a larger `maxMillis`, while no partition can be resumed", () => {
    assert.strictEqual(
      waitAfter(() => {}),
      500
    )
    assert.strictEqual(
      waitAfter(() => {}, 2_000),
      2_000
    )
  })

  it("is at most `maxMillis` while a partition is new or to be released", () => {
    assert.strictEqual(
      waitAfter((ownership) => ownership.assign(2, [at(0), at(1), at(2)])),
      100
    )
    assert.strictEqual(
      waitAfter((ownership) => ownership.assign(2, [at(0)])),
      100
    )
  })

  it("is at most as long as the newest pause has lasted", () => {
    for (const [since, wait] of [
      [1_000, 5],
      [997.5, 5],
      [979.5, 20],
      [500, 100]
    ] as const) {
      assert.strictEqual(
        waitAfter((ownership) => {
          ownership.pause([at(0)], 100)
          ownership.pause([at(1)], since)
        }),
        wait
      )
    }
    assert.strictEqual(
      waitAfter((ownership) => ownership.pause([at(0)], 1_000), 0),
      0
    )
  })

  it("a repeated pause keeps its age, and a resumed partition does not count", () => {
    assert.strictEqual(
      waitAfter((ownership) => {
        ownership.pause([at(0)], 970)
        ownership.pause([at(0)], 1_000)
      }),
      30
    )
    assert.strictEqual(
      waitAfter((ownership) => {
        ownership.pause([at(0)], 970)
        ownership.resume([at(0)], 0)
      }),
      500
    )
  })
})
