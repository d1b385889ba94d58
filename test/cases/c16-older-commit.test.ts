import { assert, describe } from "@effect/vitest"
import { Binding, BrokerError } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { append, orders, scenario, start, until } from "../scenarios/bus.ts"

const values = Array.from({ length: 20 }, (_, index) => `v${index}`)
const rebalancing = new BrokerError.RebalanceInProgress({ groupId: "billing" })

describe("C16 a retried older commit overwrites a newer one", () => {
  for (const ackMode of ["MANUAL", "MANUAL_IMMEDIATE"] as const) {
    scenario(
      `OFF-08 ${ackMode}: refused and lost answers never move the committed offset back; a revoke finds the highest`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders", { partitions: 2 })
          yield* append("orders", 0, values)
          yield* append("orders", 1, values)
          yield* memory.addFault(FaultPlan.nth(3, { operation: "commit" }, { _tag: "Refuse", error: rebalancing }))
          yield* memory.addFault(FaultPlan.nth(5, { operation: "commit" }, { _tag: "Delay", duration: "5 seconds" }))
          yield* memory.addFault(
            FaultPlan.nth(7, { operation: "commit" }, { _tag: "ApplyThenFail", error: rebalancing })
          )
          const handled: Array<string> = []
          const binding = Binding.make("orders", {
            ...orders,
            ackMode,
            commitInterval: 0,
            handler: ({ value, record }) =>
              Effect.andThen(
                Effect.sleep("50 millis"),
                Effect.sync(() => handled.push(`${record.partition} ${value}`))
              )
          })
          const first = yield* start(binding)
          yield* until(() => handled.length >= 20, "50 millis")
          const second = yield* start(binding)
          yield* until(() => handled.length >= 40, "500 millis")
          yield* until(() => first.of("PartitionReleased").length === 1, "500 millis")
          assert.strictEqual(new Set(handled).size, 40)
          assert.strictEqual(handled.length, 40)
          const { partition, committed } = first.of("PartitionReleased")[0]!
          assert.strictEqual(second.of("PartitionAssigned")[0]?.position, committed)
          const offsets = (yield* memory.commits("billing")).filter((commit) => commit.partition === partition)
          const sorted = [...offsets].sort((a, b) => Number(a.offset - b.offset))
          assert.deepStrictEqual(offsets, sorted)
        })
    )
  }
})
