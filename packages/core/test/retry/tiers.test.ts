import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { make } from "../../src/internal/retry/tiers.ts"
import * as RetryPolicy from "../../src/RetryPolicy.ts"
import * as Route from "../../src/Route.ts"
import * as TopicName from "../../src/TopicName.ts"

const source = { topic: "orders", groupId: "billing" }
const tiersOf = (retry: RetryPolicy.RetryPolicy) => make(source, TopicName.standard, retry.tiers)
const three = tiersOf(RetryPolicy.tiered())

describe("tiers of a binding", () => {
  it("NAM-01 NAM-02 each have a topic, named by the strategy or by their suffix", () => {
    const tiers = tiersOf(RetryPolicy.tiered({ tiers: ["1 second", { delay: "2 seconds", topicSuffix: "late" }] }))
    expect(tiers.topics.map(({ topic }) => topic)).toEqual(["orders.retry-1", "orders.late"])
    expect(tiers.ofTopic("orders.late")).toBe(tiers.topicOf(2))
    expect(tiers.ofTopic("orders")).toBeUndefined()
  })

  it("RTY-05 defaults: 10 s, 60 s, 300 s, three deliveries, one handler at once", () => {
    expect(RetryPolicy.tiered().tiers).toEqual(
      [10_000, 60_000, 300_000].map((delayMillis) => ({
        delayMillis,
        maxAttempts: 3,
        topicSuffix: undefined,
        concurrency: 1,
        sharesTopic: false
      }))
    )
  })

  it("CFG ruling 15 delays must grow, unless equal ones share a topic; every mistake is named", () => {
    const refusal = (options: RetryPolicy.TieredOptions) => {
      try {
        RetryPolicy.tiered(options)
      } catch (error) {
        if (error instanceof RetryPolicy.InvalidRetryPolicy) return error.issues.map(({ path }) => path)
        throw error
      }
      return []
    }
    expect(refusal({ tiers: ["1 minute", "1 minute"] })).toEqual(["tiers[1].delay"])
    expect(refusal({ tiers: ["1 minute", "1 minute"], equalDelays: "share" })).toEqual([])
    expect(refusal({ tiers: ["1 minute", "10 seconds"], equalDelays: "share" })).toEqual(["tiers[1].delay"])
    const everything = { delay: Number.NaN, maxAttempts: 0, concurrency: 1.5 }
    expect(refusal({ tiers: [everything], partitions: 0, replicationFactor: -1 })).toEqual([
      "tiers[0].delay",
      "tiers[0].maxAttempts",
      "tiers[0].concurrency",
      "partitions",
      "replicationFactor"
    ])
    expect(refusal({ tiers: [Number.POSITIVE_INFINITY, "-1 seconds"] as never })).toContain("tiers[0].delay")
  })

  it("a fixed delay is one tier", () => {
    const retry = RetryPolicy.fixedDelay({ delay: "1 minute", maxAttempts: 10 })
    expect(make(source, TopicName.dashed, retry.tiers).topics).toMatchObject([
      { topic: "orders-retry", delaysMillis: [60_000], first: 1, last: 1 }
    ])
    expect(retry.tiers[0]?.maxAttempts).toBe(10)
  })

  it("RTY-06 RTY-07 all deliveries of a tier come before the next tier", () => {
    expect(three.nextDestination(0, 1, { _tag: "NextTier" })).toEqual({ tier: 1, attempt: 1 })
    expect(three.nextDestination(1, 2, { _tag: "NextTier" })).toEqual({ tier: 1, attempt: 3 })
    expect(three.nextDestination(1, 3, { _tag: "NextTier" })).toEqual({ tier: 2, attempt: 1 })
    expect(three.nextDestination(3, 3, { _tag: "NextTier" })).toBe("exhausted")
    expect(tiersOf(RetryPolicy.none).nextDestination(0, 1, { _tag: "NextTier" })).toBe("exhausted")
  })

  it("CLS-09 ruling 15 a target only goes forward; a target that does not exist is reported", () => {
    const to = (tier: number) => ({ _tag: "Tier", tier }) as const
    expect(three.nextDestination(0, 1, to(2))).toEqual({ tier: 2, attempt: 1 })
    expect(three.nextDestination(2, 3, to(2))).toEqual({ tier: 3, attempt: 1 })
    expect(three.nextDestination(2, 1, to(1))).toEqual({ tier: 2, attempt: 2 })
    for (const missing of [4, 1.5, Number.POSITIVE_INFINITY, Number.NaN])
      expect(three.nextDestination(0, 1, to(missing))).toBe("no-such-tier")
    for (const behind of [0, -1]) expect(three.nextDestination(0, 1, to(behind))).toEqual({ tier: 1, attempt: 1 })
  })

  it("a route by time goes to the first tier that waits long enough, or the last", () => {
    const after = (millis: number) => Route.after(millis) as Extract<Route.Route, { _tag: "After" }>
    expect(three.nextDestination(0, 1, after(1))).toEqual({ tier: 1, attempt: 1 })
    expect(three.nextDestination(0, 1, after(10_000))).toEqual({ tier: 1, attempt: 1 })
    expect(three.nextDestination(0, 1, after(10_001))).toEqual({ tier: 2, attempt: 1 })
    expect(three.nextDestination(0, 1, after(30_000))).toEqual({ tier: 2, attempt: 1 })
    expect(three.nextDestination(0, 1, after(3_000_000))).toEqual({ tier: 3, attempt: 1 })
    expect(three.nextDestination(2, 1, after(30_000))).toEqual({ tier: 2, attempt: 2 })
    expect(three.nextDestination(0, 1, after(Number.POSITIVE_INFINITY))).toEqual({ tier: 3, attempt: 1 })
    for (const none of [Number.NaN, -1]) expect(three.nextDestination(0, 1, after(none))).toBe("no-such-tier")
    expect(tiersOf(RetryPolicy.none).nextDestination(0, 1, after(1))).toBe("exhausted")
  })

  it("every path through the tiers ends after at most the configured deliveries", () => {
    const destination = fc.oneof(
      fc.constant({ _tag: "NextTier" } as const),
      fc.record({ _tag: fc.constant("Tier" as const), tier: fc.oneof(fc.integer({ min: -2, max: 6 }), fc.double()) }),
      fc.record({ _tag: fc.constant("After" as const), delayMillis: fc.oneof(fc.nat(400_000), fc.double()) })
    )
    fc.assert(
      fc.property(fc.infiniteStream(destination), (destinations) => {
        let at = { tier: 0, attempt: 1 }
        for (let hops = 0; hops <= 9; hops++) {
          const hop = three.nextDestination(at.tier, at.attempt, destinations.next().value)
          if (typeof hop === "string") return true
          if (hop.tier < at.tier || (hop.tier === at.tier && hop.attempt <= at.attempt)) return false
          at = hop
        }
        return false
      })
    )
  })
})
