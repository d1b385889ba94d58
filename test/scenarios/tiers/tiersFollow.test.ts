/** Retry tiers follow the commands and the breaker of their binding, with the consumer of the main topic or one of their own. */
import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, inTime, orders, scenario, settle, start, until } from "../bus.ts"

interface Call {
  readonly value: string
  readonly tier: number
}

/** Records whose value begins with `bad` fail in the main topic and succeed in tier 1, 10 seconds later, unless everything is down. */
const failing = (calls: Array<Call>, consumer: "shared" | "separate", isDown = () => false) =>
  Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["10 seconds", "1 minute"], consumer }),
    circuitBreaker: { minimumNumberOfCalls: 5, slidingWindowSize: 5, waitDurationInOpenState: "1 minute" },
    handler: ({ value, tier }) => {
      calls.push({ value, tier })
      return isDown() || (tier === 0 && value.startsWith("bad")) ? Effect.die("no") : Effect.void
    }
  })

const valuesIn = (calls: ReadonlyArray<Call>, tier: number) =>
  calls.filter((call) => call.tier === tier).map(({ value }) => value)

const statesOf = (containers: ReadonlyArray<{ readonly state: string }>) => containers.map(({ state }) => state)

for (const consumer of ["shared", "separate"] as const) {
  describe(`retry tiers follow their binding (consumer: ${consumer})`, () => {
    scenario("RTY-19 paused with it and resumed with it, past the time of the records that wait", () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["bad", "good"])
        const calls: Array<Call> = []
        const { connector } = yield* start(failing(calls, consumer))
        yield* connector.pause("orders")
        assert.deepStrictEqual(statesOf((yield* connector.snapshot("orders")).containers), Array(3).fill("PAUSED"))
        yield* append("orders", 0, ["later"])
        yield* advance("10 minutes")
        assert.deepStrictEqual([valuesIn(calls, 0), valuesIn(calls, 1)], [["bad", "good"], []])
        yield* connector.resume("orders")
        yield* settle
        assert.deepStrictEqual([valuesIn(calls, 0), valuesIn(calls, 1)], [["bad", "good", "later"], ["bad"]])
        assert.deepStrictEqual(statesOf((yield* connector.snapshot("orders")).containers), Array(3).fill("RUNNING"))
      })
    )

    for (const command of ["stop", "destroy"] as const) {
      scenario(`RTY-19 after ${command} no tier handles a record, and none of its sessions is left`, () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          yield* append("orders", 0, ["bad"])
          const calls: Array<Call> = []
          const { connector, of } = yield* start(failing(calls, consumer))
          yield* inTime(connector[command]("orders"))
          const sessions = consumer === "separate" ? 2 : 1
          assert.strictEqual(of("SessionClosed").length, sessions)
          for (const group of ["billing", "billing.retry"]) {
            assert.deepStrictEqual((yield* memory.group(group)).members, [])
          }
          if (command === "stop") {
            assert.deepStrictEqual(statesOf((yield* connector.snapshot("orders")).containers), Array(3).fill("STOPPED"))
          }
          yield* advance("10 minutes")
          assert.deepStrictEqual(valuesIn(calls, 1), [])
          yield* command === "stop" ? connector.start("orders") : connector.register(failing(calls, consumer))
          yield* until(() => valuesIn(calls, 1).length === 1, "1 second")
          assert.deepStrictEqual([valuesIn(calls, 0), valuesIn(calls, 1)], [["bad"], ["bad"]])
        })
      )
    }

    scenario(
      "RTY-19 failures in the tiers open the one breaker, which holds main topic and tiers until it closes",
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          // Two of five fail at most. The last five succeed, so the window has forgotten the failures of the main topic.
          const first = [
            "good",
            "good",
            "bad 1",
            "good",
            "good",
            "bad 2",
            "good",
            "good",
            "bad 3",
            ...Array(5).fill("good")
          ]
          yield* append("orders", 0, first)
          const calls: Array<Call> = []
          let isDown = false
          const { connector, of } = yield* start(failing(calls, consumer, () => isDown))
          yield* until(() => calls.length === first.length, "1 second")
          assert.deepStrictEqual(of("BreakerChanged"), [])
          isDown = true
          yield* until(() => of("BreakerChanged").length > 0, "1 second")
          assert.deepStrictEqual([valuesIn(calls, 0).length, valuesIn(calls, 1).length], [first.length, 3])
          yield* append("orders", 0, ["good", "good", "good"])
          yield* advance("30 seconds")
          assert.deepStrictEqual([valuesIn(calls, 0).length, valuesIn(calls, 1).length], [first.length, 3])
          assert.deepStrictEqual(statesOf((yield* connector.snapshot("orders")).containers), Array(3).fill("PAUSED"))
          isDown = false
          yield* until(() => of("BreakerChanged").some(({ to }) => to === "CLOSED"), "1 second")
          yield* until(() => valuesIn(calls, 0).length === first.length + 3, "1 second")
          assert.deepStrictEqual(statesOf((yield* connector.snapshot("orders")).containers), Array(3).fill("RUNNING"))
        })
    )
  })
}
