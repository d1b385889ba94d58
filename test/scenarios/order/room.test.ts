/** `perKey.maxParkedKeys`: so many keys may be parked in all partitions of a consumer. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, scenario, start } from "../bus.ts"
import { keyed } from "./keys.ts"

const publish = (partition: number, ...values: ReadonlyArray<string>) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, (memory) =>
    memory.append(
      "orders",
      partition,
      values.map((value) => ({ key: bytes(value.slice(0, 1)), value: bytes(value) }))
    )
  )

const twoPartitions = Effect.flatMap(MemoryBroker.MemoryBroker, ({ createTopic }) =>
  createTopic("orders", { partitions: 2 })
)

describe("PKO-06 how many keys may be parked", () => {
  scenario("PKO-06 the partitions of a consumer share the limit, and go on when a key is free", () =>
    Effect.gen(function* () {
      yield* twoPartitions
      const { binding, handled } = keyed({ perKey: { maxParkedKeys: 2 }, fails: { a1: 1, b1: 1 } })
      yield* start(binding)
      yield* publish(0, "a1")
      yield* publish(1, "b1")
      yield* advance("1 second")
      yield* publish(0, "c1")
      yield* publish(1, "d1")
      yield* advance("1 second")
      assert.deepStrictEqual(handled, [])
      yield* advance("10 seconds")
      assert.deepStrictEqual(handled.toSorted(), ["a1", "b1", "c1", "d1"])
    })
  )

  scenario("PKO-06 the keys of a unit that has ended take no room of the others", () =>
    Effect.gen(function* () {
      yield* twoPartitions
      const perKey = { maxParkedKeys: 2 } as const
      const tiers = ["60 seconds"] as const
      const one = keyed({ perKey, tiers, fails: { a1: 1, b1: 1 } })
      yield* start(one.binding)
      yield* publish(0, "a1")
      yield* publish(1, "b1")
      yield* advance("1 second")
      const other = keyed({ perKey, tiers })
      yield* start(other.binding)
      yield* advance("10 seconds")
      yield* publish(0, "c1")
      yield* publish(1, "d1")
      yield* advance("1 second")
      // Each has one parked key now, and room for another one.
      assert.deepStrictEqual([...one.handled, ...other.handled].toSorted(), ["c1", "d1"])
      assert.deepStrictEqual([one.handled.length, other.handled.length], [1, 1])
    })
  )
})
