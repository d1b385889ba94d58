import { assert, describe, it } from "@effect/vitest"
import { RetryPolicy } from "@eventbus/core"
import { FaultPlan, RetryTiers, TestBus, TestHandler } from "@eventbus/testkit"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { binding, failingTimes, publish, stuck } from "./orders.ts"

describe("faults on a TestBus", () => {
  it.effect("fail: a refused copy is published again, and settled names it meanwhile", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      yield* bus.fail(TestBus.next(3, { operation: "produce", topic: "orders.retry-1" }))
      yield* publish("a")
      yield* TestClock.adjust("500 millis")
      assert.include(yield* stuck, "its copy was refused by orders.retry-1, attempt 2: No broker of [memory]")
      yield* TestClock.adjust("1 minute")
      yield* bus.settled
      yield* RetryTiers.expectPath("orders", "a", ["main", "tier 1", "handled"])
    }).pipe(Effect.provide(TestBus.layer([binding(failingTimes(3))])))
  )

  it.effect("fail: nextProduce and nextCommit apply once, and never to the test's own publish", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      yield* bus.fail(TestBus.nextProduce)
      yield* bus.fail(TestBus.nextCommit)
      yield* publish("a")
      yield* TestClock.adjust("1 minute")
      yield* bus.settled
      const events = yield* bus.events
      const count = (tag: string) => events.filter(({ event }) => event._tag === tag).length
      assert.deepStrictEqual([count("PublishFailed"), count("CommitFailed")], [1, 1])
    }).pipe(Effect.provide(TestBus.layer([binding(failingTimes(3))])))
  )

  it.effect(
    "crash: a running handler is interrupted, and its record is delivered again after the session timeout",
    () => {
      const handler = TestHandler.slow<string>("20 seconds")
      return Effect.gen(function* () {
        const bus = yield* TestBus.TestBus
        yield* publish("a")
        yield* TestClock.adjust("5 seconds")
        yield* bus.crash("orders")
        assert.include(yield* stuck, "no consumer has partition orders-0; its consumer crashed at 5s")
        yield* TestClock.adjust("20 seconds")
        assert.deepStrictEqual(yield* handler.handled, [])
        yield* TestClock.adjust("1 minute")
        yield* bus.settled
        assert.deepStrictEqual(yield* handler.handled, ["a"])
        const [first, second, ...more] = yield* bus.deliverySteps("orders", "a")
        assert.deepStrictEqual([first?.outcome, second?.outcome, more.length], ["CutOff", "Handled", 0])
        assert.isAtLeast(second!.atMillis, 45_000)
        const none = yield* Effect.exit(bus.crash("orders", 3))
        assert.include(String(none), "no such consumer to crash; open are 1")
      }).pipe(Effect.provide(TestBus.layer([binding(handler)])))
    }
  )

  it.effect("crash: the second of two consumers goes on", () => {
    const handler = TestHandler.recording<string>()
    return Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      yield* bus.crash("orders", 0)
      for (const partition of [0, 1]) yield* bus.publish("orders", { value: `${partition}`, partition })
      assert.strictEqual((yield* handler.handled).length, 1)
      yield* TestClock.adjust("2 minutes")
      yield* bus.settled
      assert.strictEqual((yield* handler.handled).length, 2)
    }).pipe(
      Effect.provide(TestBus.layer([binding(handler, { concurrency: 2, retry: RetryPolicy.none })], { partitions: 2 }))
    )
  })

  it.effect("rebalance: partitions move to a second process and back, and no record is handled twice", () => {
    const handler = TestHandler.slow<string>("1 second")
    return Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      for (let n = 0; n < 8; n++) yield* bus.publish("orders", { value: `v${n}`, partition: n % 4 })
      yield* bus.rebalance
      yield* TestClock.adjust("1 minute")
      yield* bus.settled
      assert.sameMembers([...(yield* handler.handled)], ["v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7"])
      const moved = (yield* bus.events).filter(({ event }) => event._tag === "PartitionRevoked")
      assert.isAtLeast(moved.length, 2)
      assert.strictEqual(yield* bus.state("orders"), "RUNNING")
    }).pipe(Effect.provide(TestBus.layer([binding(handler, { retry: RetryPolicy.none })], { partitions: 4 })))
  })

  it.effect("partition.lose: the partition is lost and assigned again, and its record is handled again", () => {
    const handler = TestHandler.slow<string>("5 seconds")
    return Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      yield* publish("a")
      yield* bus.partition("orders", 0).lose
      yield* TestClock.adjust("1 minute")
      yield* bus.settled
      assert.deepStrictEqual(yield* handler.handled, ["a"])
      assert.strictEqual((yield* handler.calls).length, 2)
    }).pipe(Effect.provide(TestBus.layer([binding(handler)])))
  })

  it.effect("fail: a timed fault of a plan applies", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      yield* bus.fail(FaultPlan.at("1 second", { _tag: "BrokerDown", duration: "20 seconds" }))
      yield* TestClock.adjust("2 seconds")
      yield* publish("a")
      assert.include(yield* stuck, "orders-0@0")
      yield* TestClock.adjust("2 minutes")
      yield* bus.settled
    }).pipe(Effect.provide(TestBus.layer([binding(TestHandler.recording<string>())])))
  )
})
