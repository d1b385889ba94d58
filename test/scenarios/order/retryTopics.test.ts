/** The retry topics of an order per key change while it runs. */
import { assert, describe } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, scenario, start } from "../bus.ts"
import { keyed, publishKeyed } from "./keys.ts"

const tier = "orders.retry-1"

const withAdmin = <A, E>(use: (admin: Broker.Admin) => Effect.Effect<A, E>) =>
  Effect.scoped(Effect.flatMap(Broker.Broker, (broker) => Effect.flatMap(broker.admin, use)))

const seconds = (count: number) => Effect.forEach(Array.from({ length: count }), () => advance("1 second"))

/** A program that has handled a record, and whose record c1 will fail once. */
const running = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  const { binding, handled } = keyed({ fails: { c1: 1 } })
  yield* start(binding)
  yield* publishKeyed("a1")
  yield* advance("1 second")
  return { memory, handled }
})

describe("retry topics of an order per key", () => {
  scenario("PKO-04 a retry topic that is deleted is made again, and the source goes on", () =>
    Effect.gen(function* () {
      const { handled } = yield* running
      yield* withAdmin((admin) => admin.deleteTopics([tier]))
      yield* seconds(60)
      yield* publishKeyed("b1", "c1", "c2")
      yield* seconds(20)
      assert.deepStrictEqual(handled, ["a1", "b1", "c1", "c2"])
    })
  )

  scenario("PKO-04 a retry topic grows with its source", () =>
    Effect.gen(function* () {
      const { memory, handled } = yield* running
      yield* withAdmin((admin) => admin.createPartitions("orders", 3))
      yield* memory.append(
        "orders",
        2,
        ["c1", "c2"].map((value) => ({ key: bytes("c"), value: bytes(value) }))
      )
      yield* seconds(400)
      assert.deepStrictEqual(handled, ["a1", "c1", "c2"])
    })
  )
})
