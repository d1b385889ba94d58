import { assert, describe } from "@effect/vitest"
import { Binding, type Delivery, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, scenario, start } from "../bus.ts"

class Orders {
  readonly topic = "orders"
  readonly groupId = "billing"
  readonly value = Serde.string
  readonly #handled: Array<string> = []

  get handled(): ReadonlyArray<string> {
    return this.#handled
  }

  handler({ value }: Delivery.Delivery<unknown, string>) {
    return Effect.sync(() => void this.#handled.push(value))
  }
}

describe("the options of a binding are an instance of a class", () => {
  scenario("BND-01 its handler sees the instance", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 1 })
      yield* append("orders", 0, ["a1", "a2"])
      const orders = new Orders()
      yield* start(Binding.make("orders", orders))
      yield* advance("1 second")
      assert.deepStrictEqual(orders.handled, ["a1", "a2"])
    })
  )
})
