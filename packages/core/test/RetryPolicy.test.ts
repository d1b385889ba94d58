import { describe, expect, it } from "@effect/vitest"
import { Duration } from "effect"
import * as fc from "fast-check"
import { worstCaseTotalMillis } from "../src/internal/retry/backoff.ts"
import * as RetryPolicy from "../src/RetryPolicy.ts"

const refusal = (options: RetryPolicy.BlockingOptions) => {
  try {
    RetryPolicy.blocking(options)
  } catch (error) {
    if (error instanceof RetryPolicy.InvalidRetryPolicy) return error
    throw error
  }
  return expect.unreachable("was accepted")
}

describe("RetryPolicy", () => {
  it("RTY-01 defaults: 3 attempts, 100 ms doubling up to 2 s, a fifth of jitter", () => {
    expect(RetryPolicy.blocking()).toEqual({
      blocking: { maxAttempts: 3, initialBackoffMillis: 100, multiplier: 2, maxBackoffMillis: 2000, jitter: 0.2 },
      tiers: [],
      consumer: "shared"
    })
    expect(RetryPolicy.blocking({ maxAttempts: 5, initialBackoff: "200 millis" }).blocking).toMatchObject({
      maxAttempts: 5,
      initialBackoffMillis: 200,
      maxBackoffMillis: 2000
    })
    expect(RetryPolicy.blocking({ maxBackoff: Duration.minutes(1) }).blocking.maxBackoffMillis).toBe(60_000)
  })

  it("the policy none is one attempt without a wait", () => {
    expect(RetryPolicy.none.blocking.maxAttempts).toBe(1)
    expect(worstCaseTotalMillis(RetryPolicy.none.blocking)).toBe(0)
  })

  it("names every bad setting at once: path, found value, allowed values", () => {
    const error = refusal({
      maxAttempts: 2.5,
      initialBackoff: Number.NaN,
      multiplier: 0.5,
      maxBackoff: -1,
      jitter: 2
    })
    expect(error.issues).toEqual([
      { path: "blocking.maxAttempts", found: "2.5", allowed: "a whole number, 1 to 2147483647" },
      {
        path: "blocking.initialBackoff",
        found: "NaN",
        allowed: 'a duration such as "10 seconds", or a whole number of ms, 0 ms to 9007199254740991 ms'
      },
      { path: "blocking.multiplier", found: "0.5", allowed: "a finite number, 1 or more" },
      {
        path: "blocking.maxBackoff",
        found: "-1",
        allowed: 'a duration such as "10 seconds", or a whole number of ms, 0 ms to 9007199254740991 ms'
      },
      { path: "blocking.jitter", found: "2", allowed: "a finite number, 0 to 1" }
    ])
    expect(error.message.split("\n")).toHaveLength(5)
    expect(error.message).toContain("blocking.maxAttempts is 2.5; allowed: a whole number, 1 to 2147483647")
  })

  it("refuses every number that is not a count of attempts, and every infinite duration", () => {
    for (const maxAttempts of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(refusal({ maxAttempts }).issues.map((issue) => issue.path)).toEqual(["blocking.maxAttempts"])
    }
    for (const interval of [
      Number.POSITIVE_INFINITY,
      "Infinity",
      Duration.infinity,
      "-1 seconds",
      Number.NaN
    ] as const) {
      expect(refusal({ initialBackoff: interval }).issues[0]?.path).toBe("blocking.initialBackoff")
      expect(refusal({ maxBackoff: interval }).issues[0]?.path).toBe("blocking.maxBackoff")
    }
    for (const multiplier of [0, Number.NaN, Number.POSITIVE_INFINITY])
      expect(refusal({ multiplier }).issues).toHaveLength(1)
    for (const jitter of [-0.1, 1.1, Number.NaN]) expect(refusal({ jitter }).issues).toHaveLength(1)
  })

  it("an accepted policy has a finite worst case; others are refused with InvalidRetryPolicy", () => {
    fc.assert(
      fc.property(
        fc.record(
          {
            maxAttempts: fc.oneof(fc.integer({ min: -2, max: 50 }), fc.double()),
            initialBackoff: fc.oneof(fc.integer({ min: -2, max: 5000 }), fc.double()),
            multiplier: fc.oneof(fc.constantFrom(1, 1.5, 2, 10), fc.double()),
            maxBackoff: fc.oneof(fc.integer({ min: -2, max: 5000 }), fc.double()),
            jitter: fc.oneof(fc.constantFrom(0, 0.2, 1), fc.double())
          },
          { requiredKeys: [] }
        ),
        (options) => {
          try {
            const { blocking } = RetryPolicy.blocking(options)
            fc.pre(blocking.maxAttempts <= 1000)
            expect(worstCaseTotalMillis(blocking)).toBeGreaterThanOrEqual(0)
            expect(worstCaseTotalMillis(blocking)).toBeLessThan(Number.POSITIVE_INFINITY)
          } catch (error) {
            if (error instanceof RetryPolicy.InvalidRetryPolicy) expect(error.issues.length).toBeGreaterThan(0)
            else throw error
          }
        }
      )
    )
  })
})
