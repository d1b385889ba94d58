import { assert, describe, it } from "@effect/vitest"
import type { Clock } from "effect"
import type { ConsumerContext } from "../../src/internal/delivery/consumerContext.ts"
import * as DueTimes from "../../src/internal/delivery/dueTimes.ts"

describe("due times of single records", () => {
  it("RTY-09 MSG-20 a clock that moves on between two readings makes no record early", () => {
    let nowMillis = 10_000
    const clock = { currentTimeMillisUnsafe: () => nowMillis++ } as Clock.Clock
    const context = { clock, setBackMillis: () => 0 } as ConsumerContext<never>
    const record = {
      topic: "orders.retry-1",
      partition: 0,
      offset: 0n,
      timestamp: 9_000,
      key: null,
      value: null,
      headers: []
    }
    assert.strictEqual(DueTimes.dueMillis(context, record, 2_000), 11_000)
  })
})
