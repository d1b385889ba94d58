import { assert, describe } from "@effect/vitest"
import { Binding, CurrentTransaction, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { type Duration, Effect } from "effect"
import { advance, append, bytes, orders, scenario, start, until, valuesOf } from "../bus.ts"
import type { Down } from "../kinds.ts"

/** Sends, and then does what `rest` says. */
const sending = (rest: (value: string) => Effect.Effect<void, Down>) => ({
  ...orders,
  retry: RetryPolicy.none,
  onError: { Down: Route.retry },
  handler: ({ value }: { readonly value: string }) =>
    Effect.andThen(Effect.orDie(CurrentTransaction.send({ topic: "out", key: null, value: bytes(value) })), rest(value))
})

const cluster = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("out")
  return memory
})

describe("transactions of handlers that take long", () => {
  for (const [name, takes] of [
    ["many that take longer together than a transaction may by default", "25 seconds"],
    ["each as long as its budget", "6 minutes"]
  ] as const satisfies ReadonlyArray<readonly [string, Duration.Input]>) {
    scenario(`OFF-17 ${name}: each record is handled once, and no transaction is aborted`, () =>
      Effect.gen(function* () {
        const memory = yield* cluster
        const values = ["a", "b", "c", "d", "e"]
        yield* append("orders", 0, values)
        const app = yield* start(
          Binding.makeTransactional(
            "orders",
            sending(() => Effect.sleep(takes))
          )
        )
        yield* until(() => app.of("Settled").length === values.length, "15 seconds")
        yield* advance("1 second")
        assert.strictEqual(app.of("Started").length, values.length)
        assert.deepStrictEqual(app.of("TransactionFailed"), [])
        assert.deepStrictEqual(yield* valuesOf("out"), values)
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 5n)
      })
    )
  }

  scenario("CB-08 OFF-17 records handled before the breaker opened are committed without waiting", () =>
    Effect.gen(function* () {
      const memory = yield* cluster
      yield* append("orders", 0, ["slow", "slow too", "b", "c"])
      const circuitBreaker = {
        minimumNumberOfCalls: 2,
        slidingWindowSize: 2,
        slowCallDuration: "1 second",
        automaticPauseOnOpen: false,
        waitDurationInOpenState: "10 minutes"
      } as const
      const slow = (value: string) => Effect.sleep(value.startsWith("slow") ? "2 seconds" : 0)
      const app = yield* start(Binding.makeTransactional("orders", { ...sending(slow), circuitBreaker }))
      yield* advance("2 seconds")
      yield* advance("2 seconds")
      assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
      assert.deepStrictEqual(yield* valuesOf("out"), ["slow", "slow too"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
      yield* advance("10 minutes")
      yield* advance("1 second")
      assert.deepStrictEqual(yield* valuesOf("out"), ["slow", "slow too", "b", "c"])
      assert.deepStrictEqual(app.of("TransactionFailed"), [])
    })
  )

  scenario("RTY-14 OFF-17 records handled before the slots of a tier are taken are committed without waiting", () =>
    Effect.gen(function* () {
      const memory = yield* cluster
      yield* memory.createTopic("orders.retry-1", { partitions: 2 })
      yield* append("orders.retry-1", 0, ["a", "b", "c"])
      yield* append("orders.retry-1", 1, ["long"])
      const retry = RetryPolicy.tiered({ tiers: ["10 seconds"] })
      const takes = (value: string) => Effect.sleep(value === "long" ? "5 minutes" : "1 second")
      const app = yield* start(Binding.makeTransactional("orders", { ...sending(takes), retry }))
      for (let second = 0; second < 15; second++) yield* advance("1 second")
      assert.deepStrictEqual(yield* valuesOf("out"), ["a"])
      yield* until(() => app.of("Settled").length === 4, "10 seconds")
      assert.sameMembers(yield* valuesOf("out"), ["a", "b", "c", "long"])
      assert.deepStrictEqual(app.of("TransactionFailed"), [])
    })
  )
})
