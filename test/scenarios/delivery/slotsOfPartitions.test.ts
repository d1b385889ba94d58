import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, start } from "../bus.ts"

describe("partitions that share the only slot alternate (RTY-18)", () => {
  /** Records as they were handled, of partitions `a` and `b` with three records each. */
  const handled = (
    ackMode: "MANUAL" | "MANUAL_IMMEDIATE",
    handler: (value: string, calls: number) => Effect.Effect<void>
  ) =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* append("orders", 0, ["a1", "a2", "a3"])
      yield* append("orders", 1, ["b1", "b2", "b3"])
      const calls: Array<string> = []
      let running = 0
      const binding = Binding.make("orders", {
        ...orders,
        ackMode,
        maxInFlight: 1,
        retry: RetryPolicy.blocking({ maxAttempts: 2 }),
        handler: ({ value }) =>
          Effect.suspend(() => {
            assert.strictEqual(++running, 1)
            return handler(value, calls.push(value))
          }).pipe(Effect.ensuring(Effect.sync(() => running--)))
      })
      yield* start(binding)
      yield* advance("10 seconds")
      return calls.join(" ")
    })

  scenario("quick handlers of a partition run in one slot lease", () =>
    Effect.gen(function* () {
      const calls = yield* handled("MANUAL", () => Effect.void)
      assert.strictEqual(calls, "a1 a2 a3 b1 b2 b3")
    })
  )

  scenario("a slow handler ends the lease", () =>
    Effect.gen(function* () {
      const calls = yield* handled("MANUAL", () => Effect.sleep("2 millis"))
      assert.strictEqual(calls, "a1 b1 a2 b2 a3 b3")
    })
  )

  scenario("waiting for a commit ends the lease", () =>
    Effect.gen(function* () {
      const calls = yield* handled("MANUAL_IMMEDIATE", () => Effect.void)
      assert.isBelow(calls.indexOf("b1"), calls.indexOf("a3"))
    })
  )

  scenario("a record that waits for its next attempt ends the lease", () =>
    Effect.gen(function* () {
      const calls = yield* handled("MANUAL", (value, calls) =>
        value === "a1" && calls === 1 ? Effect.die("not yet") : Effect.void
      )
      assert.strictEqual(calls, "a1 b1 b2 b3 a1 a2 a3")
    })
  )

  scenario("waiting for copies to be acknowledged ends the lease", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* memory.addFault(FaultPlan.chance(1, { operation: "produce" }, { _tag: "Delay", duration: "1 hour" }))
      yield* append("orders", 0, Array(1_500).fill("bad"))
      const calls = { bad: 0, good: 0 }
      const binding = Binding.make("orders", {
        ...orders,
        ackMode: "MANUAL",
        maxInFlight: 1,
        retry: RetryPolicy.none,
        handler: ({ value }) =>
          Effect.suspend(() => {
            calls[value === "bad" ? "bad" : "good"]++
            return value === "bad" ? Effect.die("bad") : Effect.void
          })
      })
      yield* start(binding)
      yield* advance("1 second")
      yield* append("orders", 1, ["good"])
      yield* advance("1 second")
      // As many copies as a partition may have on their way.
      assert.deepStrictEqual(calls, { bad: 250, good: 1 })
    })
  )
})
