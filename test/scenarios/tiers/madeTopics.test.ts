import { assert, describe } from "@effect/vitest"
import { Binding, Broker, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { orders, publish, scenario, settle, start, valuesOf } from "../bus.ts"
import { Down, Invalid } from "../kinds.ts"

const dayMillis = 86_400_000

/** A binding that makes its own topics: of four records with one key, two wait in a retry topic then, and two are dead letters. */
const withCopies = Effect.fnUntraced(function* (config: Readonly<Record<string, string>>) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { config: new Map(Object.entries(config)) })
  yield* start(
    Binding.make("orders", {
      ...orders,
      retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["10 seconds", "30 days"] }),
      onError: { Down: Route.retry, Invalid: Route.deadLetter() },
      handler: ({ value }): Effect.Effect<void, Down | Invalid> =>
        Effect.fail(value.startsWith("dead") ? new Invalid() : new Down())
    })
  )
  yield* publish("orders", ["late 1", "dead 1", "late 2", "dead 2"], () => "one key")
  yield* settle
})

/** The value of a setting in each topic that was made. */
const made = (setting: string) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, ({ broker }) =>
    Effect.scoped(
      Effect.flatMap(broker.admin, (admin) =>
        Effect.forEach(["orders.retry-1", "orders.retry-2", "orders.DLT"], (topic) =>
          Effect.map(admin.topicConfig(topic), (config) => config.get(setting))
        )
      )
    )
  )

/** Where `log.cleanup.policy` is `compact`: so is every topic that does not say otherwise. */
const compacting = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, ({ broker }) =>
    Effect.provideService(effect, Broker.Broker, {
      ...broker,
      admin: Effect.map(
        broker.admin,
        (admin): Broker.Admin => ({
          ...admin,
          createTopics: (topics) =>
            admin.createTopics(
              topics.map((topic) => ({
                ...topic,
                config: new Map([["cleanup.policy", "compact"], ...(topic.config ?? [])])
              }))
            )
        })
      )
    })
  )

describe("topics that the connector makes for a binding", () => {
  scenario(
    "RTY-23 ruling 23 where the cluster compacts topics by default, these are not compacted: no later copy replaces one with its key",
    () =>
      Effect.gen(function* () {
        yield* compacting(withCopies({ "cleanup.policy": "compact" }))
        assert.deepStrictEqual(yield* valuesOf("orders.retry-1"), ["late 1", "late 2"])
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["dead 1", "dead 2"])
        assert.deepStrictEqual(yield* made("cleanup.policy"), ["delete", "delete", "delete"])
      })
  )

  for (const [source, config, baseMillis] of [
    ["says nothing", {}, 7 * dayMillis],
    ["keeps for a day", { "retention.ms": String(dayMillis) }, 7 * dayMillis],
    ["keeps for ever", { "retention.ms": "-1" }, 7 * dayMillis],
    ["keeps for 30 days", { "retention.ms": String(30 * dayMillis) }, 30 * dayMillis]
  ] as const) {
    scenario(
      `RTY-23 the source ${source}: retention of a retry topic covers twice its delay and a week, or that of the source; a dead letter stays`,
      () =>
        Effect.gen(function* () {
          yield* withCopies(config)
          assert.deepStrictEqual(yield* made("retention.ms"), [
            String(baseMillis + 20_000),
            String(baseMillis + 60 * dayMillis),
            "-1"
          ])
        })
    )
  }
})
