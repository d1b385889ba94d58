/** `TestBus` on a real Kafka, with the real clock. */
import { assert } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { TestBus, TestHandler } from "@eventbus/testkit"
import { Effect } from "effect"
import * as Bus from "./bus.ts"

KafkaSuite.shared("TestBus on a real Kafka", (bootstrap) => {
  const name = Bus.fresh("test-bus")
  const handler = TestHandler.failing<string, Error>({ times: 1, error: () => new Error("not yet") })
  const binding = Binding.make(name, {
    topic: name,
    groupId: name,
    value: Serde.string,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "20 seconds", maxAttempts: 1 }] }),
    onError: () => Route.retry,
    handler: handler.handler
  })
  Bus.story(bootstrap, "TST-08 what is not settled in time says why; a second process joins and leaves", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      yield* bus.publish(name, { key: "k", value: "v" })
      const { message } = yield* Effect.flip(bus.settled)
      assert.match(message, /retry-1-\d+@0 \(key k\) of binding '.*': it waits in tier 1, due at .* \(in .*\)/)
      yield* bus.rebalance
      assert.strictEqual((yield* handler.nth(1, "60 seconds")).tier, 1)
      yield* bus.advance("2 seconds")
      yield* bus.settled
      assert.match(yield* bus.trail(name, "k"), /failed: Error: not yet > .*retry-1\n.*handled$/)
      const refused = yield* Effect.exit(bus.crash(name))
      assert.include(String(refused), "Only a cluster in memory can be made to fail")
    }).pipe(Effect.provide(TestBus.live([binding], { partitions: 3, settleWithin: "5 seconds" })))
  )
})
