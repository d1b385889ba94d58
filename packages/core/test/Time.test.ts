import { assert, describe, it } from "@effect/vitest"
import { Binding, Ranges, RetryPolicy, Route, Serde, Time } from "@eventbus/core"
import { Effect } from "effect"

const minute = 60_000

describe("Time", () => {
  it("RCH-03 the short forms of a file are durations in code, wherever a setting is one", () => {
    const { definition } = Binding.make("orders", {
      topic: "orders",
      groupId: "billing",
      value: Serde.string,
      maxPollInterval: "5m",
      sessionTimeout: "1m 30s",
      heartbeatInterval: "250ms",
      retry: RetryPolicy.tiered({ blocking: { initialBackoff: "2s" }, tiers: ["1m", { delay: "1h 30m" }] }),
      circuitBreaker: { waitDurationInOpenState: "2min" },
      handler: () => Effect.void
    })
    assert.deepStrictEqual(definition.refused, [])
    assert.strictEqual(definition.maxPollIntervalMillis, 5 * minute)
    assert.strictEqual(definition.sessionTimeoutMillis, 1.5 * minute)
    assert.strictEqual(definition.heartbeatIntervalMillis, 250)
    assert.strictEqual(definition.retry.blocking.initialBackoffMillis, 2_000)
    assert.deepStrictEqual(
      definition.retry.tiers.map(({ delayMillis }) => delayMillis),
      [minute, 90 * minute]
    )
    assert.deepStrictEqual(Route.after("7d"), Route.after("7 days"))
  })

  it("RCH-03 a text that is no duration is refused, in code as in a file", () => {
    for (const text of ["5", "5 moons", "m", "1s 2m", "1s 1s", "-5m", ""]) {
      assert.isNaN(Time.parse(text), text)
      assert.isNaN(Ranges.millisOf(text), text)
    }
    assert.strictEqual(Ranges.millisOf("PT10S"), Time.parse("10s"))
  })
})
