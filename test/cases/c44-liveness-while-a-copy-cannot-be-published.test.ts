import { assert, describe } from "@effect/vitest"
import { Binding, Health, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, start, valuesOf } from "../scenarios/bus.ts"

const ahead = Array.from({ length: 5 }, (_, index) => `good ${index}`)

const obstacles = [
  {
    name: "the dead letter topic is missing",
    settings: { retry: RetryPolicy.none },
    blocked: "orders.DLT",
    failing: "bad",
    obstruct: Effect.void,
    remove: MemoryBroker.MemoryBroker.use(({ createTopic }) => createTopic("orders.DLT"))
  },
  {
    name: "the topic of a tier is missing",
    settings: { retry: RetryPolicy.tiered({ tiers: ["1 hour"] }) },
    blocked: "orders.retry-1",
    failing: "bad",
    obstruct: Effect.void,
    remove: MemoryBroker.MemoryBroker.use(({ createTopic }) => createTopic("orders.retry-1"))
  },
  {
    name: "the dead letter is larger than its topic takes",
    settings: { retry: RetryPolicy.none },
    blocked: "orders.DLT",
    failing: "bad".repeat(500),
    obstruct: MemoryBroker.MemoryBroker.use(({ createTopic }) =>
      createTopic("orders.DLT", { config: new Map([["max.message.bytes", "100"]]) })
    ),
    remove: MemoryBroker.MemoryBroker.use(({ broker }) =>
      Effect.scoped(
        Effect.flatMap(broker.admin, (admin) =>
          admin.alterTopicConfig("orders.DLT", new Map([["max.message.bytes", "100000"]]))
        )
      )
    )
  }
] as const

for (const processingOrder of ["partition", "key", "unordered"] as const) {
  describe(`C44 a copy cannot be published for two minutes, processingOrder ${processingOrder}`, () => {
    for (const { name, settings, blocked, failing, obstruct, remove } of obstacles) {
      scenario(`ruling 74 ${name}: live all the time, not ready, health names the topic, and all heals`, () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          yield* obstruct
          yield* append("orders", 0, [failing, ...ahead])
          const handled: Array<string> = []
          const { connector } = yield* start(
            Binding.make("orders", {
              ...{ ...orders, ...settings, processingOrder, missingTopics: "wait" },
              onError: () => (settings.retry === RetryPolicy.none ? Route.deadLetter() : Route.retry),
              handler: ({ value }) =>
                value.startsWith("bad") ? Effect.fail("no") : Effect.sync(() => handled.push(value))
            })
          )
          for (let second = 1; second <= 120; second++) {
            yield* advance("1 second")
            const { live, ready, reasons } = yield* connector.health
            assert.isTrue(live, `after ${second} s`)
            if (second < 6) continue
            assert.isFalse(ready, `after ${second} s`)
            assert.deepStrictEqual(
              reasons.map(({ _tag }) => _tag),
              ["PublisherFailing"]
            )
            assert.include(reasons.map(Health.describe)[0], blocked)
          }
          yield* remove
          yield* advance("1 minute")
          assert.deepStrictEqual(yield* connector.health, { status: "UP", live: true, ready: true, reasons: [] })
          assert.deepStrictEqual(yield* valuesOf(blocked), [failing])
          assert.sameMembers(handled, ahead)
        })
      )
    }
  })
}
