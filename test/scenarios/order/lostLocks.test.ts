/** A retry topic loses the locks of parked keys while nobody of the group reads it: what is lost with them is said. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, inTime, scenario, start } from "../bus.ts"
import { keyed, publishKeyed } from "./keys.ts"

const tier = "orders.retry-1"

const withAdmin = Effect.flatMap(MemoryBroker.MemoryBroker, ({ broker }) => broker.admin)

/** Deletes the topic, and makes it again. */
const remade = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* (yield* withAdmin).deleteTopics([tier])
  yield* memory.createTopic(tier)
})

const purged = Effect.gen(function* () {
  const admin = yield* withAdmin
  const [log] = yield* admin.topicOffsets(tier)
  yield* admin.deleteRecords(tier, [{ partition: 0, before: log!.logEnd }])
})

/** A process parks keys a and c, whose records wait for a minute, and stops. */
const stopped = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  const app = yield* start(keyed({ fails: { a1: 1, c1: 1 }, tiers: ["60 seconds"] }).binding)
  yield* publishKeyed("b1", "a1", "c1", "a2", "b2")
  yield* advance("10 seconds")
  yield* inTime(app.close)
})

const next = Effect.gen(function* () {
  const { binding, handled } = keyed({ tiers: ["60 seconds"] })
  const app = yield* start(binding)
  yield* publishKeyed("a3")
  yield* advance("90 seconds")
  const gone = app.of("LocksGone").map(({ topic, partition, topics, keys, from, to }) => ({
    ...{ topic, partition, topics, keys, from, to }
  }))
  return { gone, handled }
})

describe("PKO-07 locks that are gone", () => {
  for (const [name, lose] of [
    ["purged", purged],
    ["deleted and made again", remade]
  ] as const) {
    scenario(`PKO-07 a retry topic that is ${name} while its group is stopped: how many keys, and which offsets`, () =>
      Effect.gen(function* () {
        yield* stopped
        yield* inTime(lose)
        const { gone, handled } = yield* next
        assert.deepStrictEqual(gone, [{ topic: "orders", partition: 0, topics: [tier], keys: 2, from: 1n, to: 5n }])
        assert.deepStrictEqual(handled, ["a3"])
      }).pipe(Effect.scoped)
    )
  }

  scenario("PKO-07 a process that ends before its unit could begin leaves it to the next one to say so", () =>
    Effect.gen(function* () {
      yield* stopped
      yield* inTime(purged)
      const keeps = (millis: string) =>
        Effect.flatMap(withAdmin, (admin) => admin.alterTopicConfig("orders", new Map([["retention.ms", millis]])))
      yield* keeps("1000")
      const waits = yield* start(keyed({ tiers: ["60 seconds"] }).binding)
      yield* advance("10 seconds")
      yield* inTime(waits.close)
      assert.deepStrictEqual(waits.of("LocksGone"), [])
      yield* keeps("604800000")
      const { gone, handled } = yield* next
      assert.deepStrictEqual(gone, [{ topic: "orders", partition: 0, topics: [tier], keys: 2, from: 1n, to: 5n }])
      assert.deepStrictEqual(handled, ["a3"])
    }).pipe(Effect.scoped)
  )

  scenario("PKO-07 nothing is said where no lock is gone", () =>
    Effect.gen(function* () {
      yield* stopped
      const { gone, handled } = yield* next
      assert.deepStrictEqual([gone, [...handled].sort()], [[], ["a1", "a2", "a3", "c1"]])
    })
  )
})
