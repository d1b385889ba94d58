import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, TopicName } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, headersOf, orders, scenario, settle, start, until } from "../scenarios/bus.ts"

/** One failing record in each of six partitions, and one without key. */
const fill = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 6 })
  for (let partition = 0; partition < 6; partition++) {
    yield* memory.append("orders", partition, [{ key: bytes(`k${partition}`), value: bytes("bad") }])
  }
  yield* memory.append("orders", 5, [{ key: null, value: bytes("bad") }])
})

const failing = (missingTopics: "create" | "wait") =>
  Binding.make("orders", { ...orders, missingTopics, retry: RetryPolicy.none, handler: () => Effect.die("always") })

const originsIn = (topic: string) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    const log = yield* memory.log(topic, 0)
    return log.map((letter) => headersOf(letter).get("x-eventbus-original-partition")).sort()
  })

describe("C09 the dead letter topic is narrower, missing or slow (without retry topics)", () => {
  scenario("DLT-12 narrower: seven copies that say where they came from, no stall", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* fill
      yield* memory.createTopic("orders.DLT")
      yield* start(failing("create"))
      yield* settle
      assert.deepStrictEqual(yield* originsIn("orders.DLT"), ["0", "1", "2", "3", "4", "5", "5"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 5), 2n)
    })
  )

  scenario("DLT-02 missing: nothing committed, another binding works, creating it heals without a restart", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* fill
      const seen: Array<string> = []
      const other = Binding.make("other", {
        ...orders,
        groupId: "other",
        naming: TopicName.perGroup,
        handler: ({ value }) => Effect.sync(() => seen.push(value))
      })
      yield* start(failing("wait"), other)
      yield* advance("1 minute")
      assert.strictEqual(seen.length, 7)
      for (let partition = 0; partition < 6; partition++) {
        assert.isAtMost(Number((yield* memory.committed("billing", "orders", partition)) ?? 0n), 0)
      }
      yield* memory.createTopic("orders.DLT")
      yield* advance("10 seconds")
      yield* advance("10 seconds")
      assert.deepStrictEqual(yield* originsIn("orders.DLT"), ["0", "1", "2", "3", "4", "5", "5"])
    })
  )

  scenario("DLT-02 acknowledged after 20 s: one copy, not two", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT")
      yield* memory.append("orders", 0, [{ key: bytes("k"), value: bytes("bad") }])
      yield* memory.addFault(FaultPlan.nth(1, { operation: "produce" }, { _tag: "Delay", duration: "20 seconds" }))
      const app = yield* start(failing("create"))
      yield* until(() => app.of("Committed").some(({ offset }) => offset === 1n), "1 second")
      assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 1)
    })
  )
})
