import { assert, describe, it } from "@effect/vitest"
import { Binding, Outcome, RetryPolicy, Route, Serde } from "@eventbus/core"
import { DeadLetters, RetryTiers, TestBus, TestHandler } from "@eventbus/testkit"
import { Data, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"

class Down extends Data.TaggedError("Down")<{ readonly call: number }> {}

const down = (call: number) => new Down({ call })

/** One attempt per delivery, one delivery in a tier of a minute. */
const binding = <E>({ handler }: TestHandler.TestHandler<Uint8Array | null, string, E>) =>
  Binding.make("orders", {
    topic: "orders",
    groupId: "billing",
    value: Serde.string,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 minute", maxAttempts: 1 }] }),
    onError: () => Route.retry,
    handler
  })

const publish = (...values: ReadonlyArray<string>) =>
  Effect.forEach(values, (value) => TestBus.TestBus.use((bus) => bus.publish("orders", { key: "k", value })))

describe("TestHandler", () => {
  const recording = TestHandler.recording<string>()
  it.effect("TST-02 recording: records its deliveries, and lets a test wait for the n-th", () =>
    Effect.gen(function* () {
      const third = yield* Effect.forkChild(recording.nth(3), { startImmediately: true })
      yield* publish("a", "b", "c")
      assert.strictEqual((yield* Fiber.join(third)).value, "c")
      assert.strictEqual((yield* recording.nth(1)).value, "a")
      assert.deepStrictEqual(yield* recording.handled, ["a", "b", "c"])
      assert.deepStrictEqual(
        (yield* recording.calls).map(({ record }) => record.offset),
        [0n, 1n, 2n]
      )
    }).pipe(Effect.provide(TestBus.layer([binding(recording)])))
  )

  const once = TestHandler.recording<string>()
  it.effect("TST-02 nth fails with what was handled, in real time, although the clock stands still", () =>
    Effect.gen(function* () {
      yield* publish("a")
      const missing = yield* Effect.flip(once.nth(2, "50 millis"))
      assert.strictEqual(
        missing.message,
        'The handler did not reach success number 2. It handled: "a". It was called 1 times.'
      )
    }).pipe(Effect.provide(TestBus.layer([binding(once)])))
  )

  const eachTwice = TestHandler.failing<string, Down>({ times: 2, error: down })
  it.effect("TST-03 failing: each record fails the given number of times, through its tiers", () =>
    Effect.gen(function* () {
      yield* publish("a", "b")
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(yield* eachTwice.handled, [])
      yield* DeadLetters.expectCount("orders", 2)
    }).pipe(Effect.provide(TestBus.layer([binding(eachTwice)])))
  )

  const firstCalls = TestHandler.failing<string, Down>({ times: 2, error: down, per: "handler" })
  it.effect("TST-03 failing: with per handler the first calls fail, for any record", () =>
    Effect.gen(function* () {
      yield* publish("a", "b", "c")
      assert.deepStrictEqual(yield* firstCalls.handled, ["c"])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* firstCalls.handled, ["c", "a", "b"])
      yield* RetryTiers.expectPath("orders", { partition: 0, offset: 1 }, ["main", "tier 1", "handled"])
    }).pipe(Effect.provide(TestBus.layer([binding(firstCalls)])))
  )

  const inner = TestHandler.recording<string>()
  const slow = TestHandler.slow("10 seconds", TestHandler.failing<string, Down>({ times: 1, error: down }, inner))
  it.effect("TST-04 slow: sleeps in virtual time before its inner handler", () =>
    Effect.gen(function* () {
      yield* publish("a")
      yield* TestClock.adjust("9 seconds")
      assert.strictEqual((yield* slow.calls).length, 1)
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(yield* inner.handled, ["a"])
      yield* RetryTiers.expectTimes("orders", "k", ["0 millis", "70 seconds"])
    }).pipe(Effect.provide(TestBus.layer([binding(slow)])))
  )
})

describe("a handler driven through each result (TST-07)", () => {
  const results = Binding.make("orders", {
    topic: "orders",
    groupId: "billing",
    value: Serde.string,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 minute", maxAttempts: 1 }] }),
    handler: ({ value, tier }) =>
      Effect.sync(() => {
        if (value === "retry" && tier === 0) return Outcome.retry(new Error("later"))
        if (value === "failure") return Outcome.failure(new Error("never"))
        return Outcome.success
      })
  })

  it.effect("success is handled, retry goes to the next tier, failure to the dead letter topic", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      for (const value of ["success", "retry", "failure"]) yield* bus.publish("orders", { key: value, value })
      yield* TestClock.adjust("1 minute")
      yield* bus.settled
      yield* RetryTiers.expectPath("orders", "success", ["main", "handled"])
      yield* RetryTiers.expectPath("orders", "retry", ["main", "tier 1", "handled"])
      yield* RetryTiers.expectPath("orders", "failure", ["main", "dead letter"])
      yield* DeadLetters.expectExactly("orders", [{ key: "failure", reason: "NON_RETRYABLE", tier: 0 }])
    }).pipe(Effect.provide(TestBus.layer([results])))
  )
})
