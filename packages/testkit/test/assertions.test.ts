import { assert, describe, it } from "@effect/vitest"
import { Binding, EventBusConnector, RetryPolicy, Route, Serde } from "@eventbus/core"
import { ContainerStates, DeadLetters, RetryTiers, TestBus } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { TestClock } from "effect/testing"

class Declined extends Data.TaggedError("Declined")<{ readonly message: string }> {}
class Down extends Data.TaggedError("Down") {}

const orders = Binding.make("orders", {
  topic: "orders",
  groupId: "billing",
  value: Serde.string,
  retry: RetryPolicy.tiered({
    blocking: { maxAttempts: 2, jitter: 0 },
    tiers: [{ delay: "1 minute", maxAttempts: 1 }]
  }),
  onError: { Declined: Route.deadLetter("declined"), Down: Route.retry },
  handler: ({ value }): Effect.Effect<void, Declined | Down> => {
    if (value === "declined") return Effect.fail(new Declined({ message: "no funds" }))
    return value === "down" ? Effect.fail(new Down()) : Effect.void
  }
})

const publish = (...values: ReadonlyArray<string>) =>
  Effect.forEach(values, (value) => TestBus.TestBus.use((bus) => bus.publish("orders", { key: value, value })))

/** The message of an assertion, which must fail. */
const refused = <A, E extends { readonly message: string }, R>(assertion: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(assertion), ({ message }) => message)

const onBus = Effect.provide(TestBus.layer([orders]))

describe("DeadLetters (TST-05)", () => {
  it.effect("counts, content and headers; a failure lists all dead letters", () =>
    Effect.gen(function* () {
      yield* DeadLetters.expectNone("orders")
      yield* DeadLetters.expectExactly("orders", [])
      assert.strictEqual(
        yield* refused(DeadLetters.expectOne("orders", { key: "declined" })),
        "dead letters of 'orders'\n  expected: one with key=\"declined\"\n  found:    none"
      )
      yield* publish("good", "declined", "down")
      yield* TestClock.adjust("2 minutes")
      yield* DeadLetters.expectCount("orders", 2)
      yield* DeadLetters.expectCount("orders.DLT", 2)
      const declined: DeadLetters.Expected = {
        key: "declined",
        value: "declined",
        reason: "NON_RETRYABLE",
        exception: "Declined",
        message: "no funds",
        totalAttempts: 1,
        tier: 0,
        originalTopic: "orders",
        originalPartition: 0,
        originalOffset: 1n,
        headers: { "x-eventbus-dlt-detail": "declined" }
      }
      const down: DeadLetters.Expected = { key: "down", reason: "RETRIES_EXHAUSTED", totalAttempts: 4, tier: 1 }
      yield* DeadLetters.expectOne("orders", declined)
      yield* DeadLetters.expectExactly("orders", [down, declined])
      for (const wrong of [{ key: "x" }, { totalAttempts: 2 }, { tier: 2 }, { headers: { trace: "1" } }]) {
        yield* refused(DeadLetters.expectOne("orders", wrong))
      }
      for (const wrong of [[down], [down, down], [down, declined, declined], []]) {
        yield* refused(DeadLetters.expectExactly("orders", wrong))
      }
      const message = yield* refused(DeadLetters.expectNone("orders"))
      assert.include(message, "expected: none\n  found:    2\n")
      assert.include(message, 'key="declined" value="declined" reason="NON_RETRYABLE" exception="Declined"')
      assert.include(message, 'reason="RETRIES_EXHAUSTED" exception="Down"')
    }).pipe(onBus)
  )
})

describe("RetryTiers (TST-05)", () => {
  it.effect("path and times; a failure shows the trail", () =>
    Effect.gen(function* () {
      yield* publish("down")
      yield* RetryTiers.expectPath("orders", "down", ["main", "running"])
      yield* TestClock.adjust("1 second")
      yield* RetryTiers.expectPath("orders", "down", ["main", "tier 1", "waiting"])
      yield* TestClock.adjust("2 minutes")
      yield* RetryTiers.expectPath("orders", "down", ["main", "tier 1", "dead letter"])
      yield* RetryTiers.expectTimes("orders", "down", ["0 millis", 60_100])
      assert.strictEqual(
        yield* refused(RetryTiers.expectPath("orders", "down", ["main", "handled"])),
        [
          "path of 'down' from 'orders'",
          "  expected: main > handled",
          "  found:    main > tier 1 > dead letter",
          "    +0ms       orders-0@0          failed 2 times: Down > orders.retry-1",
          "    +1m 100ms  orders.retry-1-0@0  failed 2 times: Down > orders.DLT (RETRIES_EXHAUSTED)"
        ].join("\n")
      )
      assert.include(
        yield* refused(RetryTiers.expectTimes("orders", "down", ["0 millis", "1 minute"])),
        "expected: 0ms, 1m\n  found:    0ms, 1m 100ms"
      )
    }).pipe(onBus)
  )
})

describe("ContainerStates (TST-05)", () => {
  it.effect("state and sequence; a failure shows times and reasons", () =>
    Effect.gen(function* () {
      const connector = yield* EventBusConnector.EventBusConnector
      yield* ContainerStates.expectState("orders", "RUNNING")
      yield* connector.pause("orders")
      yield* TestClock.adjust("5 seconds")
      yield* connector.resume("orders")
      yield* connector.stop("orders")
      yield* ContainerStates.expectSequence("orders", ["RUNNING", "PAUSED", "RUNNING", "STOPPED"])
      assert.strictEqual(
        yield* refused(ContainerStates.expectSequence("orders", ["RUNNING", "STOPPED"])),
        "states of binding 'orders'\n  expected: RUNNING, STOPPED\n" +
          "  found:    RUNNING at 0ms, PAUSED by operator at 0ms, RUNNING at 5s, STOPPED at 5s"
      )
      assert.include(yield* refused(ContainerStates.expectState("orders", "RUNNING")), "found:    STOPPED")
      assert.include(yield* refused(ContainerStates.expectState("nobody", "RUNNING")), "nobody")
    }).pipe(onBus)
  )
})
