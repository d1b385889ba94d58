/** Dead letter topics can be rotated, and records can be filtered: both with what a binding already takes. */
import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, type Delivery, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { append, inTime, orders, scenario, settle, start, valuesOf } from "../bus.ts"

describe("wishes that the seed names as possible later", () => {
  scenario("EXT-08 a new topicSuffix rotates the dead letter topic; the former one is replayed by its own suffix", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      let isDown = true
      const handled: Array<string> = []
      const withSuffix = (topicSuffix: string, autoStartup = true) =>
        Binding.make("orders", {
          ...{ ...orders, autoStartup, deadLetter: DeadLetter.withSettings(DeadLetter.storeOnly, { topicSuffix }) },
          handler: ({ value }) => (isDown ? Effect.fail("down") : Effect.sync(() => handled.push(value))),
          onError: () => Route.deadLetter()
        })
      yield* append("orders", 0, ["november"])
      const former = yield* start(withSuffix("DLT-11"))
      yield* inTime(former.close)
      yield* append("orders", 0, ["december"])
      yield* start(withSuffix("DLT-12"))
      assert.deepStrictEqual(yield* valuesOf("orders.DLT-11"), ["november"])
      assert.deepStrictEqual(yield* valuesOf("orders.DLT-12"), ["december"])

      // Another process with the former suffix, which reads nothing itself.
      isDown = false
      const tool = yield* start(withSuffix("DLT-11", false))
      const letters = yield* tool.connector.deadLetters("orders")
      assert.deepInclude(yield* inTime(letters.replay(10)), { replayed: 1 })
      yield* settle
      assert.deepStrictEqual(handled, ["november"])
      assert.deepStrictEqual(yield* valuesOf("orders.DLT-12"), ["december"])
    })
  )

  scenario("EXT-08 a filter around a handler holds records back: they are finished, and no copy of them is made", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["order 1", "noise", "order 2", "noise"])
      /** A function around any handler, by header, key or value. */
      const only =
        <V, E, R>(
          keeps: (delivery: Delivery.Delivery<Uint8Array | null, V>) => boolean,
          handler: (delivery: Delivery.Delivery<Uint8Array | null, V>) => Effect.Effect<void, E, R>
        ) =>
        (delivery: Delivery.Delivery<Uint8Array | null, V>) =>
          keeps(delivery) ? handler(delivery) : Effect.void
      const handled: Array<string> = []
      const { connector } = yield* start(
        Binding.make("orders", {
          ...orders,
          handler: only<string, never, never>(
            ({ value }) => value.startsWith("order"),
            ({ value }) => Effect.sync(() => void handled.push(value))
          )
        })
      )
      assert.deepStrictEqual(handled, ["order 1", "order 2"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 4n)
      assert.strictEqual((yield* connector.snapshot("orders")).partitions[0]?.lag, 0n)
      assert.deepStrictEqual(yield* (yield* memory.broker.admin).listTopics, ["orders"])
    }).pipe(Effect.scoped)
  )
})
