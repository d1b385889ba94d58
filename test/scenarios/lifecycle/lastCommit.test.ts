import { assert, describe } from "@effect/vitest"
import { Binding } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, inTime, orders, scenario, start } from "../bus.ts"

describe("the last commit of a stop", () => {
  scenario(
    "ruling 83 LIF-12 is not held up by refusals before the stop: a broker that comes back in time gets it, and nothing is repeated",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            ackMode: "MANUAL",
            commitInterval: 0,
            shutdownTimeout: "2 seconds",
            handler: () => Effect.sleep("1 second")
          })
        )
        yield* append("orders", 0, ["a"])
        yield* advance("500 millis")
        yield* memory.inject({ _tag: "BrokerDown", duration: "14500 millis" })
        // The commit is refused at growing intervals. The attempt at 14.15 s is the last one before the stop, and the next one would come 2 seconds later.
        for (let step = 0; step < 137; step++) yield* advance("100 millis")
        assert.isAbove(app.of("CommitFailed").length, 8)
        assert.isUndefined(yield* memory.committed("billing", "orders", 0))
        yield* inTime(app.connector.stop("orders"), "50 millis")
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
        assert.deepStrictEqual(app.of("DrainTimedOut"), [])
      })
  )
})
