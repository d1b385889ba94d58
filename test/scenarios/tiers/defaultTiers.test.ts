/** A binding without `retry` runs through the three tiers of the seed: the same times and topics for every kind of handler. */
import { assert, describe } from "@effect/vitest"
import { Binding, EventBusError, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, now, scenario, start } from "../bus.ts"

class Down extends Schema.TaggedError<Down>()("Down", {}) {}

const common = {
  ...{ topic: "orders", groupId: "billing", value: Serde.string },
  /** No attempts in place, so that the times have no jitter. */
  onError: { Down: Route.nextTier }
} as const

const noted = (calls: Array<number>) =>
  Effect.flatMap(now, (millis) => {
    calls.push(millis)
    return Effect.fail(new Down())
  })

const kinds: ReadonlyArray<readonly [string, (calls: Array<number>) => Binding.Binding<never>]> = [
  ["records", (calls) => Binding.make("orders", { ...common, handler: () => noted(calls) })],
  [
    "records in batches",
    (calls) => Binding.make("orders", { ...common, listenerType: "BATCH", handler: () => noted(calls) })
  ],
  [
    "batches",
    (calls) =>
      Binding.makeBatch("orders", {
        ...common,
        handleBatch: () => Effect.mapError(noted(calls), (error) => EventBusError.BatchProcessing.from(0, error))
      })
  ],
  ["transactions", (calls) => Binding.makeTransactional("orders", { ...common, handler: () => noted(calls) })]
]

describe("a binding in code without `retry`", () => {
  for (const [kind, make] of kinds) {
    scenario(`RCH-14 RTY-05 ${kind}: three times each after 10 s, 1 min and 5 min, then the dead letter topic`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["bad"])
        const calls: Array<number> = []
        const { of } = yield* start(make(calls))
        for (let step = 0; step < 120; step++) yield* advance("10 seconds")
        // Three deliveries in each tier.
        const seconds = [0, 10, 20, 30, 90, 150, 210, 510, 810, 1110]
        assert.deepStrictEqual(
          calls,
          seconds.map((second) => second * 1_000)
        )
        const [one, two, three] = ["orders.retry-1", "orders.retry-2", "orders.retry-3"]
        assert.deepStrictEqual(
          of("Settled").map(({ target }) => target?.topic),
          [one, one, one, two, two, two, three, three, three, "orders.DLT"]
        )
        assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 1)
      })
    )
  }

  scenario("RCH-14 CFG-19 with STRICT it has no retry topics: the dead letter topic at once", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["bad"])
      const calls: Array<number> = []
      yield* start(Binding.make("orders", { ...common, orderingMode: "STRICT", handler: () => noted(calls) }))
      yield* advance("10 minutes")
      assert.deepStrictEqual(calls, [0])
      const topics = yield* Effect.scoped(Effect.flatMap(memory.broker.admin, ({ listTopics }) => listTopics))
      assert.deepStrictEqual([...topics].sort(), ["orders", "orders.DLT"])
    })
  )
})
