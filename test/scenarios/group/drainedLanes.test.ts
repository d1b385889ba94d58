import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, bytes, orders, scenario, settle, start } from "../bus.ts"
import { Down } from "../kinds.ts"

describe("a drain of records that run side by side", () => {
  scenario("OFF-06 REB-05 records before a handled one are handled too, so that the next owner repeats nothing", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const keyed = (key: string, value: string) => ({ key: bytes(key), value: bytes(value) })
      yield* memory.append("orders", 0, [
        keyed("slow", "s0"),
        keyed("slow", "s1"),
        keyed("quick", "q2"),
        keyed("slow", "s3")
      ])
      const handled: Array<string> = []
      const binding = Binding.make("orders", {
        ...orders,
        processingOrder: "key",
        handler: ({ value }) =>
          Effect.andThen(
            Effect.sleep(value.startsWith("s") ? "1 second" : 0),
            Effect.sync(() => handled.push(value))
          )
      })
      const app = yield* start(binding)
      assert.deepStrictEqual(handled, ["q2"])
      yield* Effect.forkChild(app.close)
      yield* advance("3 seconds")
      assert.deepStrictEqual(handled, ["q2", "s0", "s1"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
      yield* start(binding)
      yield* advance("1 second")
      assert.deepStrictEqual(handled, ["q2", "s0", "s1", "s3"])
    })
  )

  scenario("REB-05 ruling 6 a record whose predecessor was given up also waits for the next owner", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const keyed = (key: string, value: string) => ({ key: bytes(key), value: bytes(value) })
      yield* memory.append("orders", 0, [keyed("a", "a0"), keyed("a", "a1"), keyed("b", "b2")])
      const handled: Array<string> = []
      let isDown = true
      const binding = Binding.make("orders", {
        ...orders,
        processingOrder: "key",
        retry: RetryPolicy.blocking({ initialBackoff: "1 second" }),
        onError: { Down: Route.retry },
        handler: ({ value }) =>
          value === "a0" && isDown ? Effect.fail(new Down()) : Effect.sync(() => handled.push(value))
      })
      const app = yield* start(binding)
      assert.deepStrictEqual(handled, ["b2"])
      yield* app.connector.stop("orders")
      assert.deepStrictEqual(handled, ["b2"])
      const abandoned = app.of("Settled").filter(({ settlement }) => settlement === "Abandoned")
      assert.deepStrictEqual(
        abandoned.map(({ record, attempts }) => [record.offset, attempts]),
        [[0n, 1]]
      )
      isDown = false
      yield* start(binding)
      assert.deepStrictEqual(
        handled.filter((value) => value.startsWith("a")),
        ["a0", "a1"]
      )
    })
  )

  for (const [opens, joinsAfter] of [
    ["before it", 6],
    ["meanwhile", 0]
  ] as const) {
    scenario(
      `REB-05 CB-11 ruling 35 no record waits for a slot behind records that an open breaker holds (opens ${opens})`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders", { partitions: 2 })
          const seconds: Readonly<Record<string, number>> = { quick: 0, long: 2, fails: 3 }
          const binding = Binding.make("orders", {
            ...orders,
            processingOrder: "key",
            maxInFlight: 2,
            retry: RetryPolicy.none,
            circuitBreaker: {
              minimumNumberOfCalls: 1,
              slidingWindowSize: 1,
              waitDurationInOpenState: "1 hour",
              automaticPauseOnOpen: false
            },
            onError: { Down: Route.retry },
            handler: ({ value }) =>
              Effect.andThen(
                Effect.sleep(`${seconds[value] ?? 0} seconds`),
                value === "fails" ? Effect.fail(new Down()) : Effect.void
              )
          })
          const app = yield* start(binding)
          // The second one waits for the first, which has its key, and has a started one behind it.
          const keyed = (key: string, value: string) => ({ key: bytes(key), value: bytes(value) })
          yield* memory.append("orders", 1, [keyed("a", "long"), keyed("a", "behind"), keyed("b", "quick")])
          yield* settle
          yield* append("orders", 0, ["fails", "long", "long", "waits", "waits"])
          yield* settle
          for (let second = 0; second < 10; second++) {
            if (second === joinsAfter) yield* start(binding)
            yield* advance("1 second")
          }
          assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
          assert.deepStrictEqual(
            app.of("Started").map(({ partition, record }) => `${partition}/${record.offset}`),
            ["1/0", "1/2", "0/0", "0/1"]
          )
          assert.deepStrictEqual(
            app.of("PartitionReleased").map(({ partition }) => partition),
            [1]
          )
        })
    )
  }
})
