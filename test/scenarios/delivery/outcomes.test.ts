import { assert, describe } from "@effect/vitest"
import { Binding, IdempotencyStore, Outcome, RetryPolicy, Serde, TopicName } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer, Schema } from "effect"
import { advance, append, headersOf, orders, publish, scenario, settle, start, valuesOf } from "../bus.ts"

describe("a handler that returns an Outcome", () => {
  scenario(
    "RES-01 RES-02 RES-03 RES-04 RES-05 RES-06 RES-12 RES-13 success is committed, retry goes to the tier, failure to the dead letter topic at once",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ['"good"', '"later"', '"bad"', "no json"])
        const calls: Array<string> = []
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            naming: TopicName.dotted,
            value: Serde.json(Schema.String),
            retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["5 seconds"] }),
            handler: ({ value, tier }) =>
              Effect.sync(() => {
                calls.push(`${value} ${tier}`)
                if (value === "bad") return Outcome.failure(new Error("no such customer"))
                return value === "later" && tier === 0 ? Outcome.retry() : Outcome.success
              })
          })
        )
        assert.deepStrictEqual(calls, ["good 0", "later 0", "bad 0"])
        yield* advance("5 seconds")
        assert.deepStrictEqual(calls, ["good 0", "later 0", "bad 0", "later 1"])
        assert.deepStrictEqual(yield* valuesOf("orders.retry.1"), ['"later"'])
        assert.deepStrictEqual(yield* valuesOf("orders.error"), ['"bad"', "no json"])
        const [letter] = yield* memory.log("orders.error", 0)
        const headers = headersOf(letter)
        assert.strictEqual(headers.get("x-eventbus-dlt-reason"), "NON_RETRYABLE")
        assert.strictEqual(headers.get("x-eventbus-last-exception-class"), "ErrorResult")
        assert.strictEqual(headers.get("x-eventbus-last-exception-message"), "no such customer")
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 4n)
        assert.strictEqual(app.of("Settled").filter(({ settlement }) => settlement === "Handled").length, 2)
      })
  )
})

describe("a binding with an idempotency store", () => {
  scenario(
    "OFF-19 OFF-21 a repeated record is skipped, in all tiers by its origin; a failed record is not marked as done",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const calls: Array<string> = []
        let failures = 1
        const binding = Binding.make("orders", {
          ...orders,
          idempotency: {},
          retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["5 seconds"] }),
          handler: ({ value, tier, deduplicationKey }) =>
            Effect.suspend(() => {
              calls.push(`${value} ${tier} ${deduplicationKey}`)
              return value === "b" && failures-- > 0 ? Effect.die("down") : Effect.void
            })
        })
        const store = yield* Layer.build(IdempotencyStore.layerMemory())
        const app = yield* start(binding).pipe(Effect.provideContext(store))
        yield* publish("orders", ["a", "b"], () => "k")
        yield* advance("5 seconds")
        assert.deepStrictEqual(calls, ["a 0 orders-0-0", "b 0 orders-0-1", "b 1 orders-0-1"])
        yield* app.close
        yield* memory.setCommitted("billing", "orders", 0, 0n)
        const again = yield* start(binding).pipe(Effect.provideContext(store))
        yield* settle
        assert.strictEqual(calls.length, 3)
        assert.deepStrictEqual(
          again.of("Settled").map(({ settlement, attempts }) => `${settlement} ${attempts}`),
          ["Skipped 0", "Skipped 0"]
        )
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
        assert.deepStrictEqual(yield* valuesOf("orders.retry-1"), ["b"])
      })
  )

  scenario(
    "OFF-21 RES-03 a failed result does not mark its record as done: the record is tried again in place and in its tier",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const calls: Array<string> = []
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            idempotency: {},
            retry: RetryPolicy.tiered({ blocking: { maxAttempts: 2, jitter: 0 }, tiers: ["5 seconds"] }),
            handler: ({ value, tier }) =>
              Effect.sync(() => {
                calls.push(`${value} ${tier}`)
                if (value === "bad") return Outcome.failure()
                return tier === 0 ? Outcome.retry() : Outcome.success
              })
          })
        ).pipe(Effect.provide(IdempotencyStore.layerMemory()))
        yield* append("orders", 0, ["later", "bad"])
        yield* advance("1 second")
        yield* advance("5 seconds")
        assert.deepStrictEqual(calls, ["later 0", "later 0", "bad 0", "later 1"])
        assert.deepStrictEqual(
          app.of("Settled").map(({ settlement, attempts }) => `${settlement} ${attempts}`),
          ["Routed 2", "DeadLettered 1", "Handled 1"]
        )
      })
  )
})
