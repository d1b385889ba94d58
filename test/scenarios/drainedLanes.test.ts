import { assert, describe } from "@effect/vitest"
import { Binding } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, orders, scenario, start } from "./bus.ts"

describe("a drain of records that run side by side", () => {
  scenario("OFF-06 REB-05 records before a handled one are handled too, so that the next owner repeats nothing", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const keyed = (key: string, value: string) => ({ key: bytes(key), value: bytes(value) })
      yield* memory.append("orders", 0, [
        keyed("slow", "s0"),
        keyed("slow", "s1"),
        keyed("quick", "q2"),
        keyed("slow", "s3")
      ])
      const handled: Array<string> = []
      const binding = Binding.make("orders", {
        ...orders,
        processingOrder: "key",
        handler: ({ value }) =>
          Effect.andThen(
            Effect.sleep(value.startsWith("s") ? "1 second" : 0),
            Effect.sync(() => handled.push(value))
          )
      })
      const app = yield* start(binding)
      assert.deepStrictEqual(handled, ["q2"])
      yield* Effect.forkChild(app.close)
      yield* advance("3 seconds")
      assert.deepStrictEqual(handled, ["q2", "s0", "s1"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
      yield* start(binding)
      yield* advance("1 second")
      assert.deepStrictEqual(handled, ["q2", "s0", "s1", "s3"])
    })
  )
})
