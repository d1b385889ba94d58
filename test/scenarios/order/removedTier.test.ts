/** A deploy removes a tier while keys are parked in its topic. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, inTime, scenario, start } from "../bus.ts"
import { keyed, publishKeyed } from "./keys.ts"

const tiers = ["10 seconds", "60 seconds"] as const
const removed = "orders.retry-2"

/** Key a waits in the second tier. */
const parked = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  const app = yield* start(keyed({ fails: { a1: 2 }, tiers }).binding)
  yield* publishKeyed("a1", "a2")
  yield* advance("12 seconds")
  yield* inTime(app.close)
})

describe("PKO-07 a tier that is removed", () => {
  scenario("PKO-07 keys that are parked in its topic are said: event and health; they go on when it is back", () =>
    Effect.gen(function* () {
      yield* parked
      const fewer = yield* start(keyed({ tiers: ["10 seconds"] }).binding)
      yield* Effect.repeat(advance("5 seconds"), { times: 4 })
      const told = fewer
        .of("TopicUnavailable")
        .map(({ topic, error }) => [topic, error.message.includes("REMOVED_TIER")])
      assert.deepStrictEqual(told, [[removed, true]])
      const { status, reasons } = yield* fewer.connector.health
      assert.deepStrictEqual(
        [status, reasons.flatMap((reason) => (reason._tag === "TopicUnreadable" ? [reason.topic] : []))],
        ["DOWN", [removed]]
      )
      yield* inTime(fewer.close)
      const { binding, handled } = keyed({ tiers })
      const back = yield* start(binding)
      yield* advance("90 seconds")
      assert.deepStrictEqual(handled, ["a1", "a2"])
      assert.strictEqual((yield* back.connector.health).status, "UP")
    })
  )

  scenario("PKO-07 nothing is said of a removed tier in whose topic nothing waits", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const app = yield* start(keyed({ fails: { a1: 2 }, tiers }).binding)
      yield* publishKeyed("a1", "a2")
      yield* advance("80 seconds")
      yield* inTime(app.close)
      const fewer = yield* start(keyed({ tiers: ["10 seconds"] }).binding)
      yield* Effect.repeat(advance("5 seconds"), { times: 4 })
      assert.deepStrictEqual([fewer.of("TopicUnavailable"), (yield* fewer.connector.health).status], [[], "UP"])
    })
  )
})
