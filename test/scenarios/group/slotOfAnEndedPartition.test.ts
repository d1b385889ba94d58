import { assert, describe } from "@effect/vitest"
import { Binding } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, start } from "../bus.ts"

describe("a slot that a handler releases because its partition has ended", () => {
  /** Partition 1: "x" waits for the only place, behind "y", which is done; the place belongs to "slow" in partition 0. */
  const waitingForAPlace = Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* memory.createTopic("orders", { partitions: 2 })
    yield* append("orders", 1, ["x", "y"])
    const calls: Array<string> = []
    const app = yield* start(
      Binding.make("orders", {
        ...orders,
        processingOrder: "key",
        maxInFlight: 1,
        shutdownTimeout: "2 seconds",
        handler: ({ value }) =>
          Effect.suspend(() => {
            calls.push(value)
            if (value === "x" && calls.filter((call) => call === "x").length === 1) return Effect.interrupt
            return value === "slow" ? Effect.never : Effect.void
          })
      })
    )
    yield* append("orders", 0, ["slow"])
    yield* advance("2 seconds")
    assert.deepStrictEqual(calls, ["x", "y", "slow"])
    return { memory, app, calls }
  })

  scenario("goes to no record of another partition that has also ended: stopped", () =>
    Effect.gen(function* () {
      const { app, calls } = yield* waitingForAPlace
      yield* Effect.forkScoped(app.connector.stop("orders"))
      yield* advance("10 seconds")
      assert.deepStrictEqual(calls, ["x", "y", "slow"])
    })
  )

  scenario("goes to no record of another partition that has also ended: lost", () =>
    Effect.gen(function* () {
      const { memory, calls } = yield* waitingForAPlace
      yield* memory.inject({ _tag: "ConnectionDropped" })
      yield* advance("100 millis")
      assert.deepStrictEqual(calls, ["x", "y", "slow"])
    })
  )
})
