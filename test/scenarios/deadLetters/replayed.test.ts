import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { bytes, headersOf, orders, scenario, start } from "../bus.ts"

/** The headers of a record at partition 0 of topic `orders`, timestamp 1000, that was replayed for the group. */
const replayedFor = (groupId: string, clusterId: string) =>
  Object.entries({
    "x-eventbus-original-topic": "orders",
    "x-eventbus-original-partition": "0",
    "x-eventbus-original-offset": "7",
    "x-eventbus-original-timestamp": "77",
    "x-eventbus-first-failure-timestamp": "99",
    "x-eventbus-replay-count": "1",
    "x-eventbus-replay-group": groupId,
    "x-eventbus-replay-bond": `${clusterId}/orders/0/1000`,
    "x-eventbus-retry-tier": "3",
    "x-eventbus-total-attempts": "30"
  }).map(([key, value]) => ({ key, value: bytes(value) }))

describe("a record that was replayed to the main topic", () => {
  scenario("DLT-27 C06 ruling 30 has all its attempts again, and keeps its origin and its first failure", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { clusterId } = yield* memory.broker.admin
      const headers = replayedFor("billing", clusterId)
      yield* memory.append("orders", 0, [{ key: bytes("k"), value: bytes("x"), timestamp: 1_000, headers }])
      let calls = 0
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: 0 }),
          handler: () => Effect.suspend(() => Effect.die(`call ${++calls}`))
        })
      )
      assert.strictEqual(calls, 2)
      const letter = headersOf((yield* memory.log("orders.DLT", 0))[0])
      const expected = {
        "x-eventbus-original-offset": "7",
        "x-eventbus-original-timestamp": "77",
        "x-eventbus-first-failure-timestamp": "99",
        "x-eventbus-replay-count": "1",
        "x-eventbus-total-attempts": "2",
        "x-eventbus-retry-tier": "0"
      }
      for (const [name, value] of Object.entries(expected)) assert.strictEqual(letter.get(name), value, name)
    })
  )

  for (const listener of ["single", "batch"] as const) {
    scenario(`DLT-23 ruling 61 is skipped, and committed, by every other group (${listener})`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const { clusterId } = yield* memory.broker.admin
        const records = [replayedFor("audit", clusterId), []].map((headers, index) => ({
          ...{ key: bytes("k"), value: bytes(`v${index}`), timestamp: 1_000, headers }
        }))
        yield* memory.append("orders", 0, records)
        const seen: Array<string> = []
        const binding =
          listener === "single"
            ? Binding.make("orders", { ...orders, handler: ({ value }) => Effect.sync(() => seen.push(value)) })
            : Binding.makeBatch("orders", {
                ...orders,
                handleBatch: ({ deliveries }) => Effect.sync(() => seen.push(...deliveries.map(({ value }) => value)))
              })
        const app = yield* start(binding)
        assert.deepStrictEqual(seen, ["v1"])
        assert.deepStrictEqual(
          app.of("Settled").map(({ settlement }) => settlement),
          ["Skipped", "Handled"]
        )
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
      })
    )
  }
})
