import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, inTime, nothingInUse, orders, scenario, settle, start } from "../scenarios/bus.ts"

const failing = (calls: { count: number }) =>
  Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.blocking({ maxAttempts: 5, initialBackoff: "1 second", jitter: 0 }),
    handler: () =>
      Effect.andThen(
        Effect.sync(() => calls.count++),
        Effect.die("always")
      )
  })

describe("C22 a retry that was scheduled before the stop keeps running afterwards (without tiers and replay)", () => {
  scenario("LIF-16 CARD-07 stop right after the failure: no call, no commit, no timer, no member afterwards", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["v"])
      const calls = { count: 0 }
      const app = yield* start(failing(calls))
      yield* app.connector.stop("orders")
      assert.deepStrictEqual(yield* memory.usage, nothingInUse)
      const commits = (yield* memory.commits("billing")).length
      const events = app.events.length
      yield* advance("1 day")
      assert.strictEqual(calls.count, 1)
      assert.strictEqual((yield* memory.commits("billing")).length, commits)
      assert.strictEqual(app.events.length, events)
    })
  )

  scenario("LIF-16 stop while the broker is down: bounded, and silent afterwards", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["v"])
      const calls = { count: 0 }
      const app = yield* start(failing(calls))
      yield* memory.inject({ _tag: "BrokerDown", duration: "10 minutes" })
      yield* inTime(app.connector.stop("orders"))
      yield* advance("1 hour")
      assert.strictEqual(calls.count, 1)
      const usage = yield* memory.usage
      assert.deepStrictEqual([usage.consumers, usage.members], [0, 0])
    })
  )

  scenario("LIF-06 LIF-16 destroy and register again at once: the record is delivered once more, not twice", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["v"])
      const calls = { count: 0 }
      const app = yield* start(failing(calls))
      yield* app.connector.destroy("orders")
      const handled: Array<string> = []
      yield* app.connector.register(
        Binding.make("orders", { ...orders, handler: ({ value }) => Effect.sync(() => handled.push(value)) })
      )
      yield* settle
      yield* advance("1 hour")
      assert.strictEqual(calls.count, 1)
      assert.deepStrictEqual(handled, ["v"])
    })
  )
})
