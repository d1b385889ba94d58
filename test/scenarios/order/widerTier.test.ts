/** A retry topic with more partitions than its source: the partitions beyond have no unit, and RELAXED may have left copies there. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, inTime, scenario, start } from "../bus.ts"
import { keyed, publishKeyed } from "./keys.ts"
import { orders, publish } from "./orders.ts"

/** Of these keys, some are copied to partition 0 of three, and some to others. */
const keys = ["a", "b", "c", "d", "e", "f", "g", "h"]
const values = keys.map((key) => `${key}1`)

const wide = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("orders.retry-1", { partitions: 3 })
  return memory
})

/** RELAXED leaves a copy of each key in the retry topic. */
const left = Effect.gen(function* () {
  const memory = yield* wide
  const fails = Object.fromEntries(values.map((value) => [value, 9]))
  const relaxed = yield* start(orders({ order: "key", orderingMode: "RELAXED_IN_RETRY", fails }).binding)
  yield* publish(keys.map((key) => [key, `${key}1`]))
  yield* advance("1 second")
  yield* inTime(relaxed.close)
  return memory
})

describe("PKO-08 a retry topic that is wider than its source", () => {
  scenario("PKO-08 copies of RELAXED beyond the partitions of the source are retried, and health is UP", () =>
    Effect.gen(function* () {
      yield* left
      const { binding, handled } = orders({ order: "key" })
      const app = yield* start(binding)
      yield* Effect.repeat(advance("5 seconds"), { times: 5 })
      assert.deepStrictEqual([...handled].sort(), values)
      assert.strictEqual((yield* app.connector.health).status, "UP")
    })
  )

  scenario("PKO-08 they become a unit when the source grows to them", () =>
    Effect.gen(function* () {
      const memory = yield* wide
      const { binding, handled } = keyed({ fails: { a1: 1, b1: 1 } })
      yield* start(binding)
      yield* Effect.repeat(advance("5 seconds"), { times: 5 })
      yield* Effect.scoped(Effect.flatMap(memory.broker.admin, (admin) => admin.createPartitions("orders", 2)))
      yield* Effect.repeat(advance("60 seconds"), { times: 6 })
      yield* publishKeyed("a1", "a2")
      yield* memory.append("orders", 1, [
        { key: bytes("b"), value: bytes("b1") },
        { key: bytes("b"), value: bytes("b2") }
      ])
      yield* Effect.repeat(advance("1 second"), { times: 20 })
      assert.deepStrictEqual([...handled].sort(), ["a1", "a2", "b1", "b2"])
      assert.isBelow(handled.indexOf("b1"), handled.indexOf("b2"))
    })
  )

  scenario("PKO-05 locks beyond the source wait for an operator: the topic had more partitions once", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      const first = yield* start(keyed({ fails: { b1: 1 }, tiers: ["60 seconds"] }).binding)
      yield* memory.append("orders", 1, [{ key: bytes("b"), value: bytes("b1") }])
      yield* advance("10 seconds")
      yield* inTime(first.close)
      yield* inTime(Effect.scoped(Effect.flatMap(memory.broker.admin, (admin) => admin.deleteTopics(["orders"]))))
      yield* memory.createTopic("orders")
      const { binding, handled } = keyed({ tiers: ["60 seconds"] })
      const app = yield* start(binding)
      yield* Effect.repeat(advance("5 seconds"), { times: 30 })
      assert.deepStrictEqual(handled, [])
      assert.strictEqual((yield* app.connector.health).status, "DOWN")
    })
  )
})
