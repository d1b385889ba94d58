/**
 * A member that was cut off for longer than its session goes on before it hears that its partitions have another owner.
 */
import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, start, valuesOf } from "../bus.ts"

describe("a zombie", () => {
  for (const [kind, settings] of [
    ["in order", {}],
    ["STRICT", { orderingMode: "STRICT" }],
    ["MANUAL_IMMEDIATE", { ackMode: "MANUAL_IMMEDIATE" }],
    ["by key", { processingOrder: "key" }]
  ] as const) {
    scenario(`C12 ruling 17 ${kind}: it compares its last heartbeat before it publishes a copy`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const failing = (millis: number) =>
          Binding.make("orders", {
            ...{ ...orders, ...settings, retry: RetryPolicy.none },
            maxPollInterval: "10 minutes",
            handler: () => Effect.andThen(Effect.sleep(millis), Effect.die("no"))
          })
        const zombie = yield* start(failing(100_000))
        yield* append("orders", 0, ["a"])
        yield* advance("1 second")
        yield* memory.inject({ _tag: "Isolated", duration: "3 minutes" })
        yield* advance("50 seconds")
        const owner = yield* start(failing(0))
        yield* advance("10 seconds")
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["a"])
        // The handler of the zombie ends now. It is connected again two minutes later.
        yield* advance("45 seconds")
        assert.strictEqual(zombie.of("AttemptFailed").length, 1)
        for (let minute = 0; minute < 4; minute++) yield* advance("1 minute")
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["a"])
        assert.strictEqual(zombie.of("PartitionLost").length, 1)
        assert.strictEqual(owner.of("Settled").length, 1)
      })
    )
  }
})
