import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, append, bytes, now, orders, scenario, start } from "../scenarios/bus.ts"

class Down extends Data.TaggedError("Down") {}

/** A retry topic of 3 partitions with a delay of 1 s, one handler at once in it; a handler takes 1 ms. */
const binding = (retried: Array<{ readonly value: string; readonly partition: number; readonly atMillis: number }>) =>
  Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 second"] }),
    onError: { Down: Route.retry },
    handler: ({ value, tier, record }) =>
      tier === 0
        ? Effect.fail(new Down())
        : Effect.andThen(
            Effect.sleep("1 millis"),
            Effect.map(now, (atMillis) => void retried.push({ value, partition: record.partition, atMillis }))
          )
  })

describe("C24 waiting records are delayed together", () => {
  scenario(
    "RTY-10 ruling 13 60 failures within 50 ms are all handled between 1.0 and 1.5 s, in order per partition",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 3 })
        const retried: Parameters<typeof binding>[0] = []
        yield* start(binding(retried))
        for (let at = 0; at < 20; at++) {
          for (const partition of [0, 1, 2]) {
            yield* memory.append("orders", partition, [{ key: bytes(`k${partition}`), value: bytes(String(at)) }])
          }
          yield* advance("2500 micros")
        }
        for (let step = 0; step < 150; step++) yield* advance("10 millis")
        assert.strictEqual(retried.length, 60)
        for (const { atMillis } of retried) {
          assert.isAtLeast(atMillis, 1_000)
          assert.isAtMost(atMillis, 1_500)
        }
        for (const partition of [0, 1, 2]) {
          const order = retried.filter((each) => each.partition === partition).map(({ value }) => Number(value))
          assert.deepStrictEqual(
            order,
            order.toSorted((a, b) => a - b)
          )
        }
      })
  )

  scenario("RTY-10 a partition whose first record is due is not held back by one whose first record is not", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 3 })
      yield* memory.createTopic("orders.retry-1", { partitions: 3 })
      yield* advance("10 seconds")
      const at = (millis: number) => [
        { key: "x-eventbus-retry-tier", value: bytes("1") },
        { key: "x-eventbus-retry-timestamp", value: bytes(String(millis)) }
      ]
      yield* memory.append("orders.retry-1", 0, [{ key: null, value: bytes("later"), headers: at(10_000) }])
      yield* memory.append("orders.retry-1", 1, [{ key: null, value: bytes("due"), headers: at(5_000) }])
      const retried: Parameters<typeof binding>[0] = []
      yield* start(binding(retried))
      yield* advance("10 millis")
      assert.deepStrictEqual(
        retried.map(({ value }) => value),
        ["due"]
      )
      yield* append("orders", 0, ["fresh"])
      yield* advance("985 millis")
      assert.strictEqual(retried.length, 1)
      yield* advance("10 millis")
      assert.deepStrictEqual(
        retried.map(({ value }) => value),
        ["due", "later"]
      )
    })
  )
})
