import { assert, describe } from "@effect/vitest"
import { Binding, type CircuitBreaker, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, append, orders, scenario, start } from "../scenarios/bus.ts"

class Down extends Data.TaggedError("Down") {}

const binding = (circuitBreaker: CircuitBreaker.Options, fails: (call: number) => boolean = () => true) => {
  let calls = 0
  return Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.none,
    circuitBreaker,
    onError: { Down: Route.retry },
    handler: () => Effect.suspend(() => (fails(++calls) ? Effect.fail(new Down()) : Effect.void))
  })
}

/** After how many calls the breaker opens; undefined when 200 do not open it. */
const opensAfter = Effect.fnUntraced(function* (options: CircuitBreaker.Options, fails: (call: number) => boolean) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  const app = yield* start(binding(options, fails))
  yield* append(
    "orders",
    0,
    Array.from({ length: 200 }, (_, index) => String(index))
  )
  yield* advance("1 second")
  const opened = app.of("BreakerChanged")[0]
  return opened === undefined ? undefined : app.of("Started").length
})

describe("C15 window and minimum that contradict each other", () => {
  for (const [title, options, fails, expected] of [
    ["100/10, all fail: on exactly the 10th", { slidingWindowSize: 100, minimumNumberOfCalls: 10 }, () => true, 10],
    ["10/10, all fail", { slidingWindowSize: 10, minimumNumberOfCalls: 10 }, () => true, 10],
    ["1/1", { slidingWindowSize: 1, minimumNumberOfCalls: 1 }, (call: number) => call === 7, 7],
    [
      "half of 10 at threshold 50",
      { slidingWindowSize: 10, minimumNumberOfCalls: 10 },
      (call: number) => call % 2 === 0,
      10
    ],
    [
      "4 of 10 at threshold 50",
      { slidingWindowSize: 10, minimumNumberOfCalls: 10 },
      (call: number) => call % 10 < 4,
      undefined
    ],
    [
      "what left the window does not count",
      { slidingWindowSize: 10, minimumNumberOfCalls: 10 },
      (call: number) => call <= 4 || call === 15,
      undefined
    ],
    [
      "all of 10 at threshold 100",
      { slidingWindowSize: 10, minimumNumberOfCalls: 10, failureRateThreshold: 100 },
      (call: number) => call > 1,
      11
    ],
    [
      "one of 10 at threshold 0.0001",
      { slidingWindowSize: 10, minimumNumberOfCalls: 10, failureRateThreshold: 0.0001 },
      (call: number) => call === 3,
      10
    ]
  ] as const) {
    scenario(`CB-04 ruling 26 ${title}`, () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* opensAfter(options, fails), expected)
      })
    )
  }

  scenario("CB-06 CFG ruling 26 impossible settings are refused when the binding is registered, all at once", () =>
    Effect.gen(function* () {
      const { connector } = yield* start()
      const impossible: ReadonlyArray<readonly [CircuitBreaker.Options, ReadonlyArray<string>]> = [
        [{ slidingWindowSize: 5, minimumNumberOfCalls: 10 }, ["minimumNumberOfCalls"]],
        ...[0, 101, Number.NaN, -1, Number.POSITIVE_INFINITY].map(
          (failureRateThreshold) => [{ failureRateThreshold }, ["failureRateThreshold"]] as const
        ),
        [
          {
            slidingWindowSize: 0.5,
            slowCallRateThreshold: 0,
            waitDurationInOpenState: Number.NaN,
            permittedNumberOfCallsInHalfOpenState: 0
          },
          [
            "slidingWindowSize",
            "minimumNumberOfCalls",
            "slowCallRateThreshold",
            "waitDurationInOpenState",
            "permittedNumberOfCallsInHalfOpenState"
          ]
        ]
      ]
      for (const [options, paths] of impossible) {
        const refusal = yield* Effect.flip(connector.register(binding(options)))
        for (const path of paths) assert.include(refusal.message, `circuitBreaker.${path}`)
      }
    })
  )
})
