import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, append, orders, publish, scenario, start } from "../scenarios/bus.ts"
import { rareLooks } from "../scenarios/rareLooks.ts"

class Down extends Data.TaggedError("Down") {}

const day = 86_400_000

describe("C10 delays that a timer of the platform cannot hold", () => {
  scenario("RTY-17 ruling 12 a tier of 30 days: no call before it is due and one call after, also over a restart", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      let calls = 0
      const binding = Binding.make("orders", {
        ...orders,
        heartbeatInterval: "1 day",
        sessionTimeout: "24 days",
        retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [2_592_000_000] }),
        onError: { Down: Route.retry },
        handler: ({ tier }) =>
          Effect.suspend(() => {
            calls++
            return tier === 0 ? Effect.fail(new Down()) : Effect.void
          })
      })
      const first = yield* start(binding)
      yield* publish("orders", ["x"])
      yield* advance(3 * day)
      assert.strictEqual(calls, 1)
      yield* first.close
      // Nobody waits in between: most of the time the process is not there.
      yield* advance(26 * day)
      yield* start(binding)
      yield* advance(day - 1_000)
      assert.strictEqual(calls, 1)
      yield* advance(1_000)
      assert.strictEqual(calls, 2)
      const { retention, delay } = yield* retentionOf("orders.retry-1")
      assert.isAbove(retention, delay)
    }).pipe(rareLooks)
  )

  scenario("CB-06 an open breaker waits for 2^31 ms", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      let calls = 0
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          heartbeatInterval: "1 day",
          sessionTimeout: "24 days",
          retry: RetryPolicy.none,
          circuitBreaker: { minimumNumberOfCalls: 1, slidingWindowSize: 1, waitDurationInOpenState: 2 ** 31 },
          onError: { Down: Route.retry },
          handler: () =>
            Effect.suspend(() => {
              calls++
              return calls === 1 ? Effect.fail(new Down()) : Effect.void
            })
        })
      )
      yield* append("orders", 0, ["a", "b"])
      yield* advance("1 second")
      yield* advance(2 ** 31 - 2_000)
      assert.strictEqual(calls, 1)
      yield* advance(1_000)
      assert.strictEqual(calls, 3)
      assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
    }).pipe(rareLooks)
  )

  scenario("CFG ruling 12 a duration that is not finite is refused, with the limit", () =>
    Effect.sync(() => {
      for (const delay of [Number.NaN, Number.POSITIVE_INFINITY, -1, 2 ** 53]) {
        assert.throws(() => RetryPolicy.tiered({ tiers: [delay] }), /0 ms to 9007199254740991 ms/)
      }
    })
  )
})

const retentionOf = (topic: string) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, ({ broker }) =>
    Effect.scoped(
      Effect.flatMap(broker.admin, (admin) =>
        Effect.map(admin.topicConfig(topic), (config) => ({
          retention: Number(config.get("retention.ms")),
          delay: 30 * day
        }))
      )
    )
  )
