import { assert, describe, expect } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, append, bytes, inTime, orders, publish, scenario, start, until } from "../../../test/scenarios/bus.ts"
import * as Binding from "../src/Binding.ts"
import * as Broker from "../src/Broker.ts"
import * as Replay from "../src/internal/replay/replay.ts"
import * as RetryPolicy from "../src/RetryPolicy.ts"
import * as Route from "../src/Route.ts"
import * as Trail from "../src/Trail.ts"
import { ordersReplay } from "./replay/ordersReplay.ts"

class Down extends Data.TaggedError("Down")<{ readonly message: string }> {}

const topics = { topic: "orders", groupId: "billing" }

/** A binding with two tiers whose handler fails for `bad`, and lets it pass once it is mended. */
const failing = () => {
  const state = { mended: false }
  const binding = Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 1 },
      tiers: [
        { delay: "10 seconds", maxAttempts: 2 },
        { delay: "1 minute", maxAttempts: 1 }
      ]
    }),
    onError: { Down: Route.retry },
    handler: ({ value }) =>
      value === "bad" && !state.mended ? Effect.fail(new Down({ message: "503\nfrom the gateway" })) : Effect.void
  })
  return { state, binding }
}

const replays = MemoryBroker.MemoryBroker.useSync(({ broker }) =>
  Replay.make({
    ...{ broker, ...ordersReplay },
    tiers: failing().binding.definition.tiers
  })
)

const trailOf = (selector: Trail.Selector) => Effect.map(inTime(Trail.trail(topics, selector)), Trail.format)

describe("trail", () => {
  scenario("follows one record through all tiers, the dead letter topic, and a replay", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 4 })
      yield* advance("1 day")
      yield* append("orders", 3, ["good", "bad", "good"])
      const { state, binding } = failing()
      const app = yield* start(binding)
      yield* until(() => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"), "10 seconds")
      state.mended = true
      const dead = yield* trailOf({ partition: 3, offset: 1n })
      expect(dead).toMatchInlineSnapshot(`
        "main     orders-3@1          1970-01-02 00:00:00.000  done
        retry-1  orders.retry-1-1@0  1970-01-02 00:00:00.000  attempt 1, after Down, done
        retry-1  orders.retry-1-1@1  1970-01-02 00:00:10.000  attempt 2, after Down, done
        retry-2  orders.retry-2-1@0  1970-01-02 00:00:20.000  attempt 1, after Down, done
        DLT      orders.DLT-1@0      1970-01-02 00:01:20.000  RETRIES_EXHAUSTED after 4 attempts, Down: 503"
      `)
      yield* inTime((yield* replays).replay(1), "1 second")
      yield* until(() => app.of("Settled").at(-1)?.settlement === "Handled")
      yield* advance("1 second")
      const replayed = yield* trailOf({ partition: 3, offset: 1n })
      expect(replayed.split("\n").slice(-1)[0]).toMatchInlineSnapshot(
        `"replay   orders-3@3          1970-01-02 00:01:20.000  replay 1, done"`
      )
      // The place of the replay is the same record.
      assert.strictEqual(yield* trailOf({ partition: 3, offset: 3n }), replayed)
      assert.strictEqual(yield* trailOf({ key: "k1" }), replayed)
      assert.strictEqual((yield* trailOf({ partition: 3, offset: 0n })).split("\n").length, 1)
    })
  )

  scenario("a record that moves on while its copies are searched is not reported as done", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["bad"])
      yield* start(failing().binding)
      yield* advance("1 second")
      const { broker } = memory
      let hasMoved = false
      const moves = Effect.suspend(() => {
        if (hasMoved) return Effect.void
        hasMoved = true
        return advance("10 seconds")
      })
      const moving: Broker.Broker["Service"] = {
        ...broker,
        admin: Effect.map(broker.admin, (admin) => ({
          ...admin,
          committedOffsets: (groupId, of) => Effect.andThen(moves, admin.committedOffsets(groupId, of))
        }))
      }
      const trail = Trail.trail(topics, { partition: 0, offset: 0n })
      const hops = yield* inTime(Effect.provideService(trail, Broker.Broker, moving), "1 milli")
      expect(hops.map(({ offset, committed }) => [offset, committed])).toEqual([
        [0n, true],
        [0n, true],
        [1n, false]
      ])
    })
  )

  scenario("a record that is gone from the main topic still has its copies; a record without any has no trail", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* publish("orders", ["bad"])
      const app = yield* start(failing().binding)
      yield* until(() => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"), "10 seconds")
      const admin = yield* memory.broker.admin
      yield* admin.deleteRecords("orders", [{ partition: 0, before: -1n }])
      const hops = yield* inTime(Trail.trail(topics, { partition: 0, offset: 0n }))
      assert.deepStrictEqual(
        hops.map(({ kind }) => kind),
        ["retry", "retry", "retry", "dead-letter"]
      )
      for (const selector of [{ partition: 0, offset: 5n }, { partition: 9, offset: 0n }, { key: "never" }] as const) {
        assert.deepStrictEqual(yield* inTime(Trail.trail(topics, selector)), [])
      }
    })
  )

  scenario("hostile header text cannot break its line", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT")
      yield* memory.append("orders.DLT", 0, [
        {
          key: bytes("k"),
          headers: Object.entries({
            "x-eventbus-original-topic": "orders",
            "x-eventbus-original-partition": "0",
            "x-eventbus-original-offset": "0",
            "x-eventbus-retry-tier": "NaN",
            "x-eventbus-last-exception-class": "\u001b[31mRed\nmain orders-0@1",
            "x-eventbus-last-exception-message": "x".repeat(1000)
          }).map(([key, value]) => ({ key, value: bytes(value) }))
        }
      ])
      const [line, ...more] = (yield* trailOf({ key: "k" })).split("\n")
      assert.deepStrictEqual(more, [])
      assert.include(line, "\uFFFD[31mRed")
      assert.isBelow(line!.length, 300)
    })
  )
})
