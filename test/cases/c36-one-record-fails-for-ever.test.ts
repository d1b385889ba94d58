import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, headersOf, orders, scenario, start, until } from "../scenarios/bus.ts"
import { Down, kinds } from "../scenarios/kinds.ts"

const breaker = { slidingWindowSize: 10, minimumNumberOfCalls: 5, permittedNumberOfCallsInHalfOpenState: 5 } as const

describe("C36 one record fails for ever", () => {
  for (const [kind, bindingOf] of Object.entries(kinds)) {
    for (const permittedNumberOfCallsInHalfOpenState of [1, 2, 5]) {
      scenario(
        `ruling 72 ${kind}, ${permittedNumberOfCallsInHalfOpenState} trial calls: the breaker closes behind an outage, the record takes its route, the rest flow`,
        () =>
          Effect.gen(function* () {
            const memory = yield* MemoryBroker.MemoryBroker
            yield* memory.createTopic("orders", { partitions: 12 })
            yield* memory.createTopic("out")
            let isDown = true
            const app = yield* start(
              bindingOf({
                circuitBreaker: { ...breaker, permittedNumberOfCallsInHalfOpenState },
                handle: ({ value }) =>
                  Effect.suspend(() => (isDown || value === "X" ? Effect.fail(new Down()) : Effect.void))
              })
            )
            // The record is the first of its partition, and is there before all others.
            yield* append("orders", 0, ["X", "x1", "x2"])
            yield* advance("1 second")
            for (let partition = 1; partition < 12; partition++) {
              yield* append("orders", partition, [`${partition}-1`, `${partition}-2`])
            }
            yield* advance("2 minutes")
            assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
            isDown = false
            for (let minute = 0; minute < 8; minute++) yield* advance("1 minute")
            assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "CLOSED")
            const settled = app.of("Settled")
            const handled = settled.filter(({ settlement }) => settlement === "Handled")
            assert.strictEqual(new Set(handled.map(({ record }) => new TextDecoder().decode(record.value!))).size, 24)
            const lost = settled.filter(({ settlement }) => settlement === "DeadLettered")
            assert.deepStrictEqual(
              lost.map(({ record }) => new TextDecoder().decode(record.value!)),
              ["X"]
            )
            for (let partition = 0; partition < 12; partition++) {
              assert.strictEqual(
                yield* memory.committed("billing", "orders", partition),
                partition === 0 ? 3n : 2n,
                `partition ${partition}`
              )
            }
          })
      )
    }
  }

  for (const slidingWindowType of ["count", "time"] as const) {
    scenario(
      `ruling 72 ${slidingWindowType}: a poison record on a quiet topic never opens a breaker with defaults, and is dead-lettered after its 30 attempts`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          const app = yield* start(
            Binding.make("orders", {
              ...{ ...orders, retry: RetryPolicy.tiered() },
              circuitBreaker: { slidingWindowType },
              onError: { Down: Route.retry },
              handler: () => Effect.fail(new Down())
            })
          )
          yield* append("orders", 0, ["poison"])
          yield* until(() => app.of("Settled").at(-1)?.settlement === "DeadLettered", "1 minute")
          assert.deepStrictEqual(app.of("BreakerChanged"), [])
          const [letter] = yield* memory.log("orders.DLT", 0)
          assert.strictEqual(headersOf(letter).get("x-eventbus-total-attempts"), "30")
        })
    )
  }

  for (const slidingWindowType of ["count", "time"] as const) {
    scenario(`ruling 72 ${slidingWindowType}: the deliveries of a record in its tiers count as one, the newest`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const app = yield* start(
          Binding.make("orders", {
            ...{
              ...orders,
              retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["10 seconds", "20 seconds"] })
            },
            circuitBreaker: { minimumNumberOfCalls: 2, slidingWindowType, slidingWindowSize: 600 },
            onError: { Down: Route.retry },
            handler: ({ value, tier }) =>
              value === "poison" || (value === "late" && tier === 0) ? Effect.fail(new Down()) : Effect.void
          })
        )
        yield* append("orders", 0, ["good", "good", "good", "poison"])
        yield* advance("2 minutes")
        for (let second = 0; second < 120; second++) yield* advance("1 second")
        const ways = () =>
          app
            .of("Settled")
            .map(({ settlement }) => settlement)
            .filter((each) => each !== "Handled")
        assert.deepStrictEqual(
          ways(),
          [...Array.from({ length: 20 }, () => "Routed"), "DeadLettered"].slice(-ways().length)
        )
        assert.deepStrictEqual(app.of("BreakerChanged"), [])
        // Records that are handled at last count as successes: the poison one stays the only failure.
        for (let each = 0; each < 10; each++) {
          yield* append("orders", 0, ["late"])
          for (let second = 0; second < 12; second++) yield* advance("1 second")
        }
        assert.deepStrictEqual(app.of("BreakerChanged"), [])
      })
    )
  }
})
