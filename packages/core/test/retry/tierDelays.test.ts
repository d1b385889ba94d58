import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { retryTimes } from "../../src/internal/checks/planTimes.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import * as RetryPolicy from "../../src/RetryPolicy.ts"
import * as Route from "../../src/Route.ts"
import * as TopicName from "../../src/TopicName.ts"

const growing = { delay: "1 second", multiplier: 2, maxDelay: "30 seconds", maxAttempts: 7 } as const

const delaysOf = (tier: RetryPolicy.TierOptions["delay"] | RetryPolicy.TierOptions) => {
  const [made] = RetryPolicy.tiered({ tiers: [tier] }).tiers
  return [made!.maxAttempts, made!.delayMillis, ...(made!.laterDelaysMillis ?? [])]
}

const refused = (options: RetryPolicy.TieredOptions) => {
  try {
    RetryPolicy.tiered(options)
  } catch (error) {
    if (error instanceof RetryPolicy.InvalidRetryPolicy) return error.issues.map(({ path }) => path)
    throw error
  }
  return []
}

const tiersOf = (retry: RetryPolicy.RetryPolicy) =>
  Tiers.make({ topic: "orders", groupId: "billing" }, TopicName.standard, retry.tiers)

describe("the waits of a tier", () => {
  it("MSG-15 MSG-20 grow by the factor up to the longest, and are listed until they stay equal", () => {
    assert.deepStrictEqual(delaysOf(growing), [7, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000])
    assert.deepStrictEqual(delaysOf({ delay: 100, multiplier: 1.5, maxAttempts: 4 }), [4, 100, 150, 225, 338])
    assert.deepStrictEqual(delaysOf({ delay: 0, multiplier: 2 }), [3, 0])
    assert.deepStrictEqual(delaysOf("10 seconds"), [3, 10_000])
    const waits = tiersOf(RetryPolicy.tiered({ tiers: [growing] }))
    assert.deepStrictEqual(
      [1, 2, 6, 7, 100].map((attempt) => waits.waitMillis(1, attempt)),
      [1_000, 2_000, 30_000, 30_000, 30_000]
    )
    assert.deepStrictEqual(
      delaysOf({ delay: 1, multiplier: 10, maxAttempts: 1_000_000 }).at(-1),
      Number.MAX_SAFE_INTEGER
    )
  })

  it("a Schedule is walked once; its end, or maxAttempts, bounds the deliveries", () => {
    const limited = Schedule.max([Schedule.exponential("1 second"), Schedule.recurs(3)])
    assert.deepStrictEqual(delaysOf(limited), [3, 1_000, 2_000, 4_000])
    assert.deepStrictEqual(delaysOf({ delay: limited, maxAttempts: 2 }), [2, 1_000, 2_000])
    assert.deepStrictEqual(delaysOf({ delay: limited, maxAttempts: 9 }), [3, 1_000, 2_000, 4_000])
    assert.deepStrictEqual(delaysOf({ delay: Schedule.spaced("5 seconds"), maxAttempts: 4 }), [4, 5_000])
    assert.deepStrictEqual(
      delaysOf(Schedule.max([Schedule.spaced("4 seconds"), Schedule.during("9 seconds")])),
      [3, 4_000]
    )
  })

  it("CFG every mistake is named with its path", () => {
    const tier = (options: object) => refused({ tiers: [options as RetryPolicy.TierOptions] })
    assert.deepStrictEqual(tier({ delay: 10, multiplier: 0.5, maxDelay: "soon" }), [
      "tiers[0].multiplier",
      "tiers[0].maxDelay"
    ])
    assert.deepStrictEqual(tier({ delay: 10, maxDelay: 5 }), ["tiers[0].maxDelay"])
    assert.deepStrictEqual(tier({ delay: 1, multiplier: 1.0001, maxAttempts: 2_000 }), ["tiers[0].multiplier"])
    assert.deepStrictEqual(tier({ delay: Schedule.spaced(1), multiplier: 2 }), ["tiers[0].multiplier"])
    assert.deepStrictEqual(tier({ delay: Schedule.spaced(1) }), ["tiers[0].delay"])
    assert.deepStrictEqual(tier({ delay: Schedule.recurs(0) }), ["tiers[0].delay"])
    assert.deepStrictEqual(
      tier({ delay: Schedule.spaced("1 second").pipe(Schedule.addDelay(() => Effect.never)), maxAttempts: 2 }),
      ["tiers[0].delay"]
    )
    assert.deepStrictEqual(tier({ delay: Schedule.spaced(Number.POSITIVE_INFINITY), maxAttempts: 2 }), [
      "tiers[0].delay"
    ])
    assert.deepStrictEqual(refused({ tiers: [growing, "30 seconds"] }), ["tiers[1].delay"])
    assert.deepStrictEqual(refused({ tiers: [growing, "31 seconds"] }), [])
    assert.deepStrictEqual(refused({ tiers: ["1 second"], maxElapsedTime: "999 millis" }), ["maxElapsedTime"])
    assert.deepStrictEqual(refused({ tiers: [growing], maxElapsedTime: Number.NaN }), ["maxElapsedTime"])
  })

  it("tiers whose waits grow share no topic", () => {
    const tiers = [growing, "31 seconds", "31 seconds"] as const
    assert.deepStrictEqual(
      tiersOf(RetryPolicy.tiered({ tiers, equalDelays: "share" })).topics.map(({ topic }) => topic),
      ["orders.retry-1", "orders.retry-2"]
    )
    assert.deepStrictEqual(refused({ tiers: ["1 second", growing], equalDelays: "share" }), ["tiers[1].delay"])
  })

  it("CLS-08 a route by time goes to the first delivery ahead that waits as long", () => {
    const tiers = tiersOf(RetryPolicy.tiered({ tiers: [growing, "1 minute"] }))
    const next = (tier: number, attempt: number, wait: "5 seconds" | "40 seconds" | "1 hour") =>
      tiers.nextDestination(tier, attempt, Route.after(wait) as Extract<Route.Route, { _tag: "After" }>)
    assert.deepStrictEqual(next(0, 1, "5 seconds"), { tier: 1, attempt: 4 })
    assert.deepStrictEqual(next(1, 4, "5 seconds"), { tier: 1, attempt: 5 })
    assert.deepStrictEqual(next(1, 7, "5 seconds"), { tier: 2, attempt: 1 })
    assert.deepStrictEqual(next(0, 1, "40 seconds"), { tier: 2, attempt: 1 })
    assert.deepStrictEqual(next(0, 1, "1 hour"), { tier: 2, attempt: 1 })
  })
})

describe("the plan of waits that grow", () => {
  const timesOf = (maxElapsedTime?: "90 seconds") => {
    const retry = RetryPolicy.tiered({
      blocking: { maxAttempts: 1 },
      tiers: [{ ...growing, maxAttempts: 200 }],
      ...(maxElapsedTime && { maxElapsedTime })
    })
    return retryTimes("orders", retry, tiersOf(retry), 1_000)
  }

  it("says when each delivery is due, and counts those that it does not list", () => {
    const { deliveries, deliveriesInAll, exhausted } = timesOf()
    assert.deepStrictEqual(
      deliveries.slice(0, 8).map(({ first }) => first.earliestMillis),
      [0, 1_000, 3_000, 7_000, 15_000, 31_000, 61_000, 91_000]
    )
    assert.strictEqual(deliveries.length, 100)
    assert.strictEqual(deliveriesInAll, 201)
    assert.strictEqual(exhausted.earliestMillis, 31_000 + 195 * 30_000)
  })

  it("MSG-20 ends where the limit of time does", () => {
    const { deliveries, deliveriesInAll, exhausted } = timesOf("90 seconds")
    assert.deepStrictEqual([deliveries.length, deliveriesInAll, exhausted.earliestMillis], [7, 7, 61_000])
  })
})
