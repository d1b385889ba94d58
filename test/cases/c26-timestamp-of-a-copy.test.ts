import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, headersOf, orders, scenario, start } from "../scenarios/bus.ts"

const day = 86_400_000

describe("C26 timestamp of a copy", () => {
  scenario(
    "DLT-04 ruling 24 copies in tier and dead letter topic have a new timestamp; a header keeps the source's time exactly",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* advance(100 * day)
        const sourceMillis = 70 * day + 123
        yield* memory.append("orders", 0, [{ key: bytes("k"), value: bytes("x"), timestamp: sourceMillis }])
        yield* start(
          Binding.make("orders", {
            ...orders,
            retry: RetryPolicy.tiered({
              blocking: { maxAttempts: 1 },
              tiers: [{ delay: "5 seconds", maxAttempts: 2 }]
            }),
            handler: () => Effect.die("no")
          })
        )
        for (let second = 0; second < 12; second++) yield* advance("1 second")
        const copies = [...(yield* memory.log("orders.retry-1", 0)), ...(yield* memory.log("orders.DLT", 0))]
        assert.deepStrictEqual(
          copies.map(({ timestamp }) => timestamp - 100 * day),
          [0, 5_000, 10_000]
        )
        for (const copy of copies) {
          assert.strictEqual(headersOf(copy).get("x-eventbus-original-timestamp"), String(sourceMillis))
        }
      })
  )
})
