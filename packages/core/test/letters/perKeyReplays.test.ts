/** Replays of a binding that keeps the order of its keys. */
import { assert, describe } from "@effect/vitest"
import { Binding, Serde } from "@eventbus/core"
import { Effect } from "effect"
import { inTime, scenario } from "../../../../test/scenarios/bus.ts"
import { store } from "./ordersLetters.ts"

const given = { topic: "orders", groupId: "billing", value: Serde.string, handler: () => Effect.void } as const
const perKey = Binding.make("orders", { ...given, orderingMode: "PER_KEY" })
const relaxed = Binding.make("orders", given)

describe("dead letters with orderingMode PER_KEY", () => {
  scenario("go to no retry tier, and still to the topic that they came from", () =>
    Effect.gen(function* () {
      const memory = yield* store([{}, {}])
      yield* memory.createTopic("orders.retry-1")
      const letters = yield* Binding.deadLetters(perKey)
      const refused = yield* inTime(Effect.flip(letters.replayToTier(1, 1)))
      assert.strictEqual(refused._tag, "InvalidArgument")
      assert.include(refused.message, 'replayToTier: tier is 1, expected no retry tier with orderingMode "PER_KEY"')
      assert.strictEqual((yield* inTime(letters.replay(1))).replayed, 1)
      assert.lengthOf(yield* memory.log("orders.retry-1", 0), 0)
      const other = yield* Binding.deadLetters(relaxed)
      assert.strictEqual((yield* inTime(other.replayToTier(1, 1))).replayed, 1)
    })
  )

  scenario("go there with no plan either", () =>
    Effect.gen(function* () {
      yield* store([{}])
      const runs = yield* Binding.runs(perKey)
      const request = { action: "toTier", tier: 1, select: { all: true }, reason: "the gateway is back" } as const
      const refused = yield* inTime(Effect.flip(runs.plan(request)))
      assert.strictEqual(refused._tag, "InvalidArgument")
      const plan = yield* inTime(runs.plan({ action: "replay", select: { all: true }, reason: "it is back" }))
      assert.strictEqual(plan.count, 1)
    })
  )
})
