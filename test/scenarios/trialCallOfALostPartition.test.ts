import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, scenario, settle, start, until } from "./bus.ts"
import { Down, kinds } from "./kinds.ts"

describe("a trial call that fails after its partition was lost", () => {
  for (const [kind, bindingOf] of Object.entries(kinds)) {
    scenario(`CB-11 ruling 27 ${kind}: an uninterruptible handler gives its permit back, and the breaker goes on`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        yield* memory.createTopic("out")
        let isDown = true
        let takes: "0 millis" | "5 seconds" = "0 millis"
        const app = yield* start(
          bindingOf({
            circuitBreaker: {
              minimumNumberOfCalls: 1,
              slidingWindowSize: 1,
              permittedNumberOfCallsInHalfOpenState: 1,
              waitDurationInOpenState: "10 seconds",
              slowCallDuration: "1 minute"
            },
            handle: () =>
              Effect.uninterruptible(
                Effect.andThen(
                  Effect.suspend(() => Effect.sleep(takes)),
                  Effect.suspend(() => (isDown ? Effect.fail(new Down()) : Effect.void))
                )
              )
          })
        )
        yield* append("orders", 0, ["a", "b"])
        yield* settle
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
        takes = "5 seconds"
        yield* advance("10 seconds")
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "HALF_OPEN")
        yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
        yield* advance("3 seconds")
        yield* advance("3 seconds")
        isDown = false
        yield* append("orders", 1, ["c"])
        const handled = () => app.of("Settled").filter(({ settlement }) => settlement === "Handled").length
        yield* until(() => handled() >= 3, "5 seconds")
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "CLOSED")
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      })
    )
  }
})
