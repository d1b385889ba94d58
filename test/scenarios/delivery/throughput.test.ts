/** More consumers raise the throughput; a retry tier has its own limit. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, layer, now, orders, scenario, start, until } from "../bus.ts"

const partitions = 4

const fill = Effect.fnUntraced(function* (count: number) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions })
  for (let partition = 0; partition < partitions; partition++) {
    yield* append(
      "orders",
      partition,
      Array.from({ length: count }, (_, n) => `${partition}/${n}`)
    )
  }
  return partitions * count
})

/** Virtual seconds until all is handled, where each consumer fetches one record a second. */
const secondsWith = (concurrency: number) =>
  Effect.gen(function* () {
    const all = yield* fill(8)
    let handled = 0
    yield* start(
      Binding.make("orders", {
        ...orders,
        concurrency,
        maxPollRecords: 1,
        maxPartitionFetchBytes: 1,
        maxBufferedRecords: 1,
        handler: () => Effect.sync(() => handled++)
      })
    )
    yield* until(() => handled === all, "1 second")
    return (yield* now) / 1000
  }).pipe(Effect.scoped, Effect.provide(layer({ latency: { fetch: "1 second" } })))

describe("throughput", () => {
  it.effect("NFR-07 more consumers are faster, up to one for each partition", () =>
    Effect.gen(function* () {
      const seconds: Array<number> = []
      let before = 0
      for (const consumers of [1, 2, 4, 8]) {
        const total = yield* secondsWith(consumers)
        seconds.push(total - before)
        before = total
      }
      assert.deepStrictEqual(seconds, [32, 16, 8, 8])
    })
  )

  scenario("NFR-07 a tier handles one record at a time by default, whatever the main topic's concurrency", () =>
    Effect.gen(function* () {
      const all = yield* fill(4)
      const running = [0, 0]
      const most = [0, 0]
      let recovered = 0
      yield* start(
        Binding.make("orders", {
          ...orders,
          concurrency: partitions,
          processingOrder: "unordered",
          retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 minute"] }),
          onError: () => Route.retry,
          handler: ({ tier }) =>
            Effect.gen(function* () {
              running[tier]!++
              most[tier] = Math.max(most[tier]!, running[tier]!)
              yield* Effect.sleep("1 second")
              running[tier]!--
              if (tier === 0) return yield* Effect.fail("down")
              recovered++
            })
        })
      )
      yield* until(() => recovered === all, "1 second")
      yield* advance("1 second")
      assert.deepStrictEqual(most, [all, 1])
    })
  )
})
