/** Figures about calls of handlers and about records in memory, where the simulator found them to be false (ruling 75). */
import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect, Metric } from "effect"
import { advance, append, bytes, orders, start } from "../scenarios/bus.ts"
import { histogramOf, metered, valueOf } from "./series.ts"

class Down extends Data.TaggedError("Down") {}

const fails = ({ value }: { readonly value: string }) =>
  Effect.andThen(Effect.sleep("20 millis"), value === "bad" ? Effect.fail(new Down()) : Effect.void)

describe("figures of calls", () => {
  metered(
    "ruling 75 OBS-06 the commit of the records before a failed one of a batch is no part of its call",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["good", "bad"])
        yield* start(
          Binding.make("orders", {
            ...orders,
            listenerType: "BATCH",
            batchFailureStrategy: "SEEK_TO_FAILED",
            retry: RetryPolicy.none,
            onError: { Down: Route.retry },
            handler: fails
          })
        )
        yield* advance("10 millis")
        for (let second = 0; second < 20; second++) yield* advance("1 second")
        assert.strictEqual(yield* valueOf("eventbus.records.dlq", { reason: "RETRIES_EXHAUSTED" }), 1)
        assert.deepStrictEqual(yield* histogramOf("eventbus.processing.duration"), { count: 2, sum: 0.04 })
      }),
    { latency: { commit: "5 seconds" } }
  )

  metered("ruling 75 OBS-06 records that wait for a slot when their partition is given up have had no call", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      const binding = Binding.make("orders", {
        ...orders,
        processingOrder: "unordered",
        maxInFlight: 1,
        handler: () => Effect.sleep("1 second")
      })
      yield* start(binding)
      yield* advance("1 second")
      yield* append("orders", 0, ["a", "b", "c"])
      yield* append("orders", 1, ["a", "b", "c"])
      yield* advance("100 millis")
      yield* Effect.provideService(start(binding), Metric.MetricRegistry, new Map())
      for (let second = 0; second < 10; second++) yield* advance("1 second")
      const { count, sum } = (yield* histogramOf("eventbus.processing.duration"))!
      assert.deepStrictEqual({ sum }, { sum: count })
    })
  )
})

describe("figures of records in memory", () => {
  metered("ruling 75 nothing is buffered, and no fraction of a byte, once every record is handled", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.append(
        "orders",
        0,
        Array.from({ length: 7 }, (_, index) => ({
          key: bytes("k".repeat(index)),
          value: bytes("vvv".slice(index % 3))
        }))
      )
      const { connector } = yield* start(
        Binding.make("orders", { ...orders, processingOrder: "unordered", handler: () => Effect.sleep("1 second") })
      )
      yield* advance("500 millis")
      const [busy] = (yield* connector.snapshot("orders")).partitions
      assert.deepStrictEqual([busy?.inFlight, busy?.buffered, busy?.bufferedBytes], [7, 7, 36])
      yield* advance("1 second")
      const [idle] = (yield* connector.snapshot("orders")).partitions
      assert.deepStrictEqual([idle?.inFlight, idle?.buffered, idle?.bufferedBytes], [0, 0, 0])
    })
  )

  metered("ruling 75 records of another group are released once, in transactions too", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.retry-1")
      const owner = { key: "x-eventbus-copy-owner", value: bytes("orders.retry-1/shipping") }
      yield* memory.append(
        "orders.retry-1",
        0,
        ["a", "b", "c"].map((value) => ({ key: bytes("k"), value: bytes(value), headers: [owner] }))
      )
      const { connector } = yield* start(
        Binding.makeTransactional("orders", {
          ...orders,
          retry: RetryPolicy.tiered({ tiers: ["1 second"] }),
          handler: () => Effect.void
        })
      )
      yield* advance("1 minute")
      const { partitions } = yield* connector.snapshot("orders")
      const tier = partitions.find(({ topic }) => topic === "orders.retry-1")
      assert.deepStrictEqual([tier?.lag, tier?.buffered, tier?.bufferedBytes], [0n, 0, 0])
    })
  )
})
