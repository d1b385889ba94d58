import { assert, describe, it } from "@effect/vitest"
import { Binding, EventBusConnector, RetryPolicy, Route, Serde } from "@eventbus/core"
import { TestBus, TestHandler } from "@eventbus/testkit"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { binding, down, failingTimes, type GatewayDown, publish, stuck } from "./orders.ts"

describe("TestBus.settled", () => {
  it.effect("settled names a record that waits in a tier, with its due time", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      yield* publish("o-1")
      yield* TestClock.adjust("4 seconds")
      assert.strictEqual(
        yield* stuck,
        "At 4s, 1 record is not done:\n" +
          "- orders.retry-1-0@0 (key o-1) of binding 'orders': it waits in tier 1, due at 10s 300ms (in 6s 300ms)"
      )
      yield* TestClock.adjust("7 seconds")
      yield* bus.settled
    }).pipe(Effect.provide(TestBus.layer([binding(failingTimes(3))])))
  )

  it.effect("settled names a running handler, a wait between two attempts, and the records behind it", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      yield* publish("a", "k")
      yield* publish("b", "k")
      yield* publish("c", "k")
      yield* TestClock.adjust("1 second")
      assert.include(yield* stuck, "its handler has been running since 0ms; 2 more behind it")
      yield* TestClock.adjust("1 second")
      assert.include(yield* stuck, "attempt 1 failed (GatewayDown: answered 503), the next one is at 2s 100ms")
      yield* TestClock.adjust("1 minute")
      yield* bus.settled
    }).pipe(Effect.provide(TestBus.layer([binding(TestHandler.slow("2 seconds", failingTimes(1)))])))
  )

  it.effect("settled names a commit that is not due yet", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      yield* publish("a")
      assert.include(yield* stuck, "it was handled at 0ms and is not committed: commits go out every 1m")
      yield* TestClock.adjust("1 minute")
      yield* bus.settled
    }).pipe(
      Effect.provide(
        TestBus.layer([binding(TestHandler.recording<string>(), { ackMode: "MANUAL", commitInterval: "1 minute" })])
      )
    )
  )

  it.effect("settled names the reason of a pause, a paused tier, and a binding that is stopped or gone", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      const connector = yield* EventBusConnector.EventBusConnector
      yield* connector.pause("orders")
      yield* publish("a")
      assert.include(yield* stuck, "binding 'orders' is PAUSED by operator")
      yield* connector.resume("orders")
      yield* connector.pause("orders", { tier: 1 })
      yield* TestClock.adjust("30 seconds")
      assert.include(yield* stuck, "tier 1 is paused by itself")
      yield* connector.stop("orders")
      assert.include(yield* stuck, "binding 'orders' is STOPPED")
      assert.strictEqual(yield* bus.state("orders"), "STOPPED")
      yield* connector.destroy("orders")
      assert.include(yield* stuck, "binding 'orders' is not registered any more")
    }).pipe(Effect.provide(TestBus.layer([binding(failingTimes(3))])))
  )

  it.effect("settled names an open circuit breaker and its next probe", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      yield* publish("a", "k")
      yield* publish("b", "k")
      yield* publish("c", "k")
      const message = yield* stuck
      assert.include(message, "binding 'orders' is PAUSED by breaker")
      assert.include(message, "the circuit breaker is OPEN since 0ms, next probe at 30s")
      yield* TestClock.adjust("31 seconds")
      yield* bus.settled
    }).pipe(
      Effect.provide(
        TestBus.layer([
          Binding.make("orders", {
            topic: "orders",
            groupId: "billing",
            value: Serde.string,
            retry: RetryPolicy.none,
            circuitBreaker: { minimumNumberOfCalls: 2, slidingWindowSize: 2, waitDurationInOpenState: "30 seconds" },
            onError: () => Route.retry,
            handler: TestHandler.failing<string, GatewayDown>({ times: 2, error: down, per: "handler" }).handler
          })
        ])
      )
    )
  )

  it.effect("settled names a record that halted its partition", () =>
    Effect.gen(function* () {
      yield* publish("a")
      yield* TestClock.adjust("1 second")
      assert.include(
        yield* stuck,
        "it halted its partition at 300ms (GatewayDown: answered 503), until the binding is resumed"
      )
    }).pipe(
      Effect.provide(
        TestBus.layer([
          binding(failingTimes(99), {
            retry: RetryPolicy.blocking({ jitter: 0 }),
            orderingMode: "STRICT",
            onExhausted: "halt"
          })
        ])
      )
    )
  )
})
