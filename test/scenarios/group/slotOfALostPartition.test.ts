import { assert, describe } from "@effect/vitest"
import { Binding } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, settle, start } from "../bus.ts"

describe("a handler that goes on after its partition was lost", () => {
  for (const processingOrder of ["partition", "key", "unordered"] as const) {
    for (const attempt of [1, 2]) {
      scenario(`BND-13 ${processingOrder}: keeps its slot until it ends, in attempt ${attempt}`, () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders", { partitions: 2 })
          const calls: Array<string> = []
          const stubborn = Effect.uninterruptible(Effect.sleep("30 seconds"))
          yield* start(
            Binding.make("orders", {
              ...orders,
              processingOrder,
              maxInFlight: 1,
              handler: ({ value }) =>
                Effect.suspend(() => {
                  calls.push(value)
                  if (value === "other") return Effect.void
                  return calls.length < attempt ? Effect.die("no") : stubborn
                })
            })
          )
          yield* append("orders", 0, ["stubborn"])
          yield* advance("1 second")
          assert.strictEqual(calls.length, attempt)
          yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
          yield* append("orders", 1, ["other"])
          yield* settle
          yield* advance("20 seconds")
          assert.isFalse(calls.includes("other"))
          yield* advance("20 seconds")
          assert.isTrue(calls.includes("other"))
        })
      )
    }
  }
})
