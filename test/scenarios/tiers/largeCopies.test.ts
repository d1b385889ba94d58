import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, DeadLetterRecord, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, bytes, headersOf, incompressible, orders, scenario, start } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}

/** A record of about 1 110 bytes that fails always, between topics that take `limit` bytes; answers what came of it. */
const parkedWithin = Effect.fnUntraced(function* (limit: number, headers: DeadLetter.Settings["headers"] = {}) {
  const memory = yield* MemoryBroker.MemoryBroker
  const config = new Map([["max.message.bytes", String(limit)]])
  for (const topic of ["orders", "orders.retry-1", "orders.DLT"]) yield* memory.createTopic(topic, { config })
  const value = incompressible(1_000)
  yield* memory.append("orders", 0, [{ key: bytes("k"), value, headers: [{ key: "mine", value: bytes("1") }] }])
  let calls = 0
  const app = yield* start(
    Binding.make("orders", {
      ...orders,
      value: Serde.bytes,
      retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 second", maxAttempts: 2 }] }),
      deadLetter: DeadLetter.withSettings(DeadLetter.storeOnly, { headers }),
      onError: { Down: Route.retry },
      handler: () =>
        Effect.suspend(() => {
          calls++
          return Effect.fail(new Down())
        })
    })
  )
  for (let second = 0; second < 10; second++) yield* advance("1 second")
  const letters = yield* memory.log("orders.DLT", 0)
  const committed = yield* memory.committed("billing", "orders", 0)
  return { app, calls, committed, letters, value }
})

describe("copies of records near the size limit of their topic", () => {
  for (const limit of [1_160, 1_200, 1_300, 1_500, 2_000, 5_000]) {
    scenario(
      `DLT-10 RTY-23 rulings 21 and 22: ${limit} bytes: copies are published, with all attempts, value and own headers whole`,
      () =>
        Effect.gen(function* () {
          const { calls, committed, letters, value } = yield* parkedWithin(limit)
          assert.strictEqual(calls, 3)
          assert.strictEqual(committed, 1n)
          assert.strictEqual(letters.length, 1)
          assert.deepStrictEqual(letters[0]?.value, value)
          assert.strictEqual(headersOf(letters[0]).get("mine"), "1")
          assert.match(DeadLetterRecord.read(letters[0]!).owner!, /^(billing|#[0-9a-f]{8})$/)
          if (limit >= 1_300) assert.strictEqual(headersOf(letters[0]).get("x-eventbus-original-topic"), "orders")
          if (limit >= 1_500) assert.strictEqual(headersOf(letters[0]).get("x-eventbus-total-attempts"), "3")
          if (limit >= 5_000) assert.isTrue(headersOf(letters[0]).has("x-eventbus-last-exception-stacktrace"))
        })
    )
  }

  scenario("DLT-14 DLT-15 headers of the other sets are dropped too", () =>
    Effect.gen(function* () {
      const sets = { spring: "retry-topic", brokers: true, trailJson: true } as const
      const { committed, letters } = yield* parkedWithin(1_200, sets)
      assert.strictEqual(committed, 1n)
      assert.strictEqual(letters.length, 1)
    })
  )

  scenario(
    "ruling 22 ruling 78 a value that is too large even without headers is refused and reported with the topic's limit, and never lost or cut",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.createTopic("orders.DLT", { config: new Map([["max.message.bytes", "500"]]) })
        yield* memory.append("orders", 0, [{ key: null, value: incompressible(1_000) }])
        const app = yield* start(
          Binding.make("orders", { ...orders, retry: RetryPolicy.none, handler: () => Effect.die("no") })
        )
        for (let second = 0; second < 60; second++) yield* advance("1 second")
        assert.isAtMost(Number((yield* memory.committed("billing", "orders", 0)) ?? 0n), 0)
        const refused = app.of("PublishFailed").at(-1)?.error
        assert.strictEqual(refused?._tag, "RecordTooLarge")
        assert.include(refused?.message, "topic 'orders.DLT' takes, which is 500. Raise `max.message.bytes`")
        assert.deepStrictEqual(yield* memory.log("orders.DLT", 0), [])
      })
  )
})
