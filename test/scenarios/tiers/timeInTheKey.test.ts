/** The default idempotency key of a record is the same in all tiers, whatever time its producer gave it. */
import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, orders, scenario, start } from "../bus.ts"

const times = {
  "none, as in Kafka's oldest format": -1,
  "a time before 1970": -86_400_000,
  "microseconds, beyond the range of a Date": 9_000_000_000_000_000,
  "the longest 64 bits": 2 ** 63
}

describe("ruling 77: the default idempotency key", () => {
  for (const [name, timestamp] of Object.entries(times)) {
    scenario(`RTY-16 is the same in all tiers of a record whose time is ${name}`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.append("orders", 0, [{ key: null, value: bytes("a"), timestamp }])
        const keys: Array<string> = []
        const retry = RetryPolicy.tiered({
          blocking: { maxAttempts: 1 },
          tiers: [{ delay: "10 seconds", maxAttempts: 2 }, { delay: "20 seconds" }]
        })
        yield* start(
          Binding.make("orders", {
            ...{ ...orders, retry },
            handler: ({ idempotencyKey }) => {
              keys.push(idempotencyKey)
              return Effect.fail("declined" as never)
            }
          })
        )
        for (let round = 0; round < 30; round++) yield* advance("10 seconds")
        assert.isAbove(keys.length, 3)
        assert.deepStrictEqual([...new Set(keys)], [`default:orders-0-0@${timestamp}`])
      })
    )
  }
})
