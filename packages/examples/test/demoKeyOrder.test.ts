import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { ConfigProvider, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as Cluster from "../src/demo/cluster.ts"
import * as KeyOrder from "../src/demo/keyOrder.ts"
import { Cards } from "../src/demo/subscriptions.ts"

const world = Layer.merge(Cards.layer, Cluster.layer).pipe(
  Layer.provideMerge(MemoryBroker.layer()),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({})))
)

describe("order per key in the demo", () => {
  it.effect("tells that a customer waits in order while the others are charged, and that a held one goes on", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const telling = yield* Effect.forkChild(KeyOrder.tell((line) => lines.push(line)))
      // In steps, so that what one step has begun is asleep before the next one.
      for (let step = 0; step < 200; step++) yield* TestClock.adjust("50 millis")
      assert.deepStrictEqual(lines, [
        "9 orders in one partition, keyed by customer: ann-1 bob-1 eve-1 ann-2 cyd-1 eve-2 bob-2 ann-3 cyd-2",
        "eve-1 has failed for good and is held for an operator; later orders of eve that are parked behind it: 1",
        "ann-1 waits in subscriptions.retry-1; later orders of ann that are parked behind it: 2",
        "charged meanwhile: bob-1 cyd-1 bob-2 cyd-2",
        "ann's card works again",
        "charged in order: ann-1 ann-2 ann-3",
        "an operator lets eve go on: parked skip subscriptions 0@2",
        "dead-lettered: eve-1 · charged behind it: eve-2"
      ])
      assert.deepStrictEqual(yield* Fiber.join(telling), [])
    }).pipe(Effect.provide(world))
  )
})
