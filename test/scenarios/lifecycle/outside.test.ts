/** Bindings of other processes, seen from outside: how far their groups are, as the cluster knows it. */
import { assert, describe } from "@effect/vitest"
import { Binding, BrokerError, Outside, RetryPolicy } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, nothingInUse, orders, scenario, settle } from "../bus.ts"

const handler = () => Effect.die("no handler is called from outside")

const records = (count: number) => Array.from({ length: count }, (_, index) => ({ value: bytes(String(index)) }))

/** By `topic-partition`: what is committed, and the lag. */
const positionsOf = Effect.fnUntraced(function* (outside: Outside.Outside, name = "orders") {
  const { view } = yield* outside.get(name)
  return (view?.partitions ?? []).map(({ topic, partition, committed, lag }) => [
    `${topic}-${partition}`,
    committed,
    Number(lag)
  ])
})

describe("bindings from outside", () => {
  scenario(
    "OPS-22 the lag is what is not committed: from the log's start, or from its end where the group begins there",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 3 })
        for (const partition of [0, 1, 2]) yield* memory.append("orders", partition, records(10))
        const made = Binding.make("orders", { ...orders, handler })
        const latest = Binding.make("late", { ...orders, groupId: "late", autoOffsetReset: "latest", handler })
        const outside = yield* Outside.make([made, latest])
        assert.deepStrictEqual(yield* positionsOf(outside), [
          ["orders-0", undefined, 10],
          ["orders-1", undefined, 10],
          ["orders-2", undefined, 10]
        ])
        assert.deepStrictEqual(
          (yield* positionsOf(outside, "late")).map(([, , lag]) => lag),
          [0, 0, 0]
        )
        yield* memory.setCommitted("billing", "orders", 0, 4n)
        yield* memory.setCommitted("billing", "orders", 1, 12n)
        yield* memory.setCommitted("late", "orders", 0, 9n)
        yield* advance("10 seconds")
        assert.deepStrictEqual(yield* positionsOf(outside), [
          ["orders-0", 4n, 6],
          ["orders-1", 12n, 0],
          ["orders-2", undefined, 10]
        ])
        // A group that has read the topic never jumps to the end of another partition.
        assert.deepStrictEqual(
          (yield* positionsOf(outside, "late")).map(([, , lag]) => lag),
          [1, 10, 10]
        )
      })
  )

  scenario(
    "OPS-22 retry topics count, with the group that reads them; a missing one is no problem, a missing main topic is",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        const retry = RetryPolicy.tiered({ tiers: ["1 minute", "5 minutes"], consumer: "separate" })
        const made = Binding.make("orders", { ...orders, retry, handler })
        const outside = yield* Outside.make([made])
        const { view, failure } = yield* outside.get("orders")
        assert.deepStrictEqual([view, failure?.error._tag], [undefined, "UnknownTopic"])
        assert.deepInclude(yield* outside.health, { status: "UP", ready: true, reasons: [] })
        yield* memory.createTopic("orders")
        yield* memory.createTopic("orders.retry-1")
        yield* memory.append("orders.retry-1", 0, records(3))
        yield* memory.setCommitted("billing", "orders.retry-1", 0, 3n)
        yield* memory.setCommitted("billing.retry", "orders.retry-1", 0, 1n)
        yield* advance("10 seconds")
        assert.deepStrictEqual(yield* positionsOf(outside), [
          ["orders-0", undefined, 0],
          ["orders.retry-1-0", 1n, 2]
        ])
        assert.strictEqual((yield* outside.get("orders")).failure, undefined)
      })
  )

  scenario(
    "OPS-22 a cluster that goes away leaves what was seen, is named since when, and is seen again when it is back",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.append("orders", 0, records(2))
        const outside = yield* Outside.make([Binding.make("orders", { ...orders, handler })])
        const error = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "cut off by the test" })
        for (const nth of [1, 2]) {
          yield* memory.addFault(FaultPlan.nth(nth, { operation: "admin" }, { _tag: "Refuse", error }))
          yield* advance("10 seconds")
        }
        const { view, failure, snapshot } = yield* outside.get("orders")
        assert.deepStrictEqual([view?.asOfMillis, failure?.sinceMillis, failure?.error], [0, 10_000, error])
        assert.strictEqual(snapshot.state, "CREATED")
        const { status, live, ready, reasons } = yield* outside.health
        assert.deepStrictEqual([status, live, ready], ["DOWN", true, false])
        assert.deepInclude(reasons[0], { _tag: "ClusterUnreachable", bindings: ["orders"], sinceMillis: 10_000 })
        yield* advance("10 seconds")
        assert.deepInclude(yield* outside.health, { status: "UP", ready: true, reasons: [] })
        assert.strictEqual((yield* outside.get("orders")).view?.asOfMillis, 30_000)
      })
  )

  scenario("OPS-22 closing leaves no client behind, and at no time was there a consumer or a member", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Outside.make([Binding.make("orders", { ...orders, handler })])
          for (let round = 0; round < 5; round++) {
            yield* advance("10 seconds")
            assert.deepInclude(yield* memory.usage, { consumers: 0, producers: 0, members: 0 })
          }
        })
      )
      yield* settle
      assert.deepStrictEqual(yield* memory.usage, nothingInUse)
      assert.deepStrictEqual(yield* memory.commits("billing"), [])
    })
  )
})
