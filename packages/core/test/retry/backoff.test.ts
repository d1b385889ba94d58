import { describe, expect, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Random, Schedule } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as Backoff from "../../src/internal/retry/backoff.ts"
import type { BackoffPolicy } from "../../src/RetryPolicy.ts"

const defaults: BackoffPolicy = {
  maxAttempts: 3,
  initialBackoffMillis: 100,
  multiplier: 2,
  maxBackoffMillis: 2000,
  jitter: 0
}

const policies = fc.record({
  maxAttempts: fc.integer({ min: 1, max: 2000 }),
  initialBackoffMillis: fc.oneof(fc.nat(5000), fc.double({ min: 0, max: 1e12, noNaN: true })),
  multiplier: fc.oneof(fc.constant(1), fc.double({ min: 1, max: 1e6, noNaN: true })),
  maxBackoffMillis: fc.oneof(fc.nat(10_000), fc.double({ min: 0, max: 1e12, noNaN: true })),
  jitter: fc.double({ min: 0, max: 1, noNaN: true })
})
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const attempt = fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }))

/** Runs an always failing task under the schedule; returns when each attempt happened. */
const attemptTimes = (policy: BackoffPolicy) =>
  Effect.gen(function* () {
    const times: Array<number> = []
    const task = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      times.push(now)
      return Effect.fail("down")
    })
    const fiber = yield* Effect.forkChild(Effect.exit(Effect.retry(task, Backoff.schedule(policy))))
    yield* TestClock.adjust("365 days")
    yield* Fiber.join(fiber)
    return times
  })

const waits = (times: ReadonlyArray<number>) => times.slice(1).map((time, i) => time - times[i]!)

describe("backoff", () => {
  it("RTY-02 every wait is finite, whole, not negative and within the cap", () => {
    fc.assert(
      fc.property(policies, attempt, random, (policy, n, r) => {
        const delay = Backoff.delayMillis(policy, n, r)
        expect(Number.isFinite(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(0)
        expect(delay).toBeLessThanOrEqual(policy.maxBackoffMillis)
        expect(Number.isInteger(delay) || delay === policy.maxBackoffMillis).toBe(true)
      })
    )
  })

  it("CARD-05 the attempts in place follow a Schedule that can be stepped through without a broker", () => {
    const policy = { maxAttempts: 4, initialBackoffMillis: 100, multiplier: 3, maxBackoffMillis: 500, jitter: 0 }
    const steps = Effect.gen(function* () {
      const step = yield* Schedule.toStep(Backoff.schedule(policy))
      const delays: Array<number> = []
      while (true) {
        const next = yield* Effect.exit(step(0, undefined))
        if (Exit.isFailure(next)) return delays
        delays.push(Duration.toMillis(next.value[1]))
      }
    })
    expect(Effect.runSync(steps)).toEqual([100, 300, 500])
  })

  it("RTY-02 jitter keeps a wait within its share of the plain exponential wait", () => {
    fc.assert(
      fc.property(policies, fc.integer({ min: 1, max: 50 }), random, (policy, n, r) => {
        const plain = Backoff.delayMillis({ ...policy, jitter: 0 }, n, r)
        const delay = Backoff.delayMillis(policy, n, r)
        expect(Math.abs(delay - plain)).toBeLessThanOrEqual(policy.jitter * plain + 2)
      })
    )
  })

  it("C28 the worst case is the exact sum of attempts minus one waits, and no run exceeds it", () => {
    fc.assert(
      fc.property(policies, fc.array(random, { minLength: 20 }), (policy, randoms) => {
        let longest = 0
        let actual = 0
        for (let n = 1; n < policy.maxAttempts; n++) {
          longest += Backoff.delayMillis(policy, n, 1)
          actual += Backoff.delayMillis(policy, n, randoms[n % randoms.length]!)
        }
        const worst = Backoff.worstCaseTotalMillis(policy)
        // Equal but for the rounding of sums of a fractional cap.
        expect(Math.abs(worst - longest)).toBeLessThanOrEqual(longest * 1e-9)
        expect(actual).toBeLessThanOrEqual(worst * (1 + 1e-9))
      })
    )
  })

  it("C28 worked cases: defaults, jitter, one attempt, cap reached early, multiplier 1, a huge number of attempts", () => {
    expect(Backoff.worstCaseTotalMillis(defaults)).toBe(300)
    expect(Backoff.worstCaseTotalMillis({ ...defaults, jitter: 0.2 })).toBe(360)
    expect(Backoff.worstCaseTotalMillis({ ...defaults, maxAttempts: 1 })).toBe(0)
    expect(Backoff.worstCaseTotalMillis({ ...defaults, maxAttempts: 10 })).toBe(100 + 200 + 400 + 800 + 1600 + 4 * 2000)
    expect(Backoff.worstCaseTotalMillis({ ...defaults, maxAttempts: 10, jitter: 0.5 })).toBe(
      150 + 300 + 600 + 1200 + 5 * 2000
    )
    expect(Backoff.worstCaseTotalMillis({ ...defaults, maxAttempts: 5, multiplier: 1 })).toBe(400)
    expect(Backoff.worstCaseTotalMillis({ ...defaults, maxAttempts: 1e12 })).toBe(3100 + (1e12 - 1 - 5) * 2000)
    expect(Backoff.worstCaseTotalMillis({ ...defaults, maxAttempts: 1e12, initialBackoffMillis: 0 })).toBe(0)
  })

  it.effect("RTY-01 three attempts wait 100 and 200 ms; five from 200 ms wait 200, 400, 800, 1600", () =>
    Effect.gen(function* () {
      expect(waits(yield* attemptTimes(defaults))).toEqual([100, 200])
      const payments = { ...defaults, maxAttempts: 5, initialBackoffMillis: 200 }
      expect(waits(yield* attemptTimes(payments))).toEqual([200, 400, 800, 1600])
      expect(waits(yield* attemptTimes({ ...payments, maxAttempts: 7 }))).toEqual([200, 400, 800, 1600, 2000, 2000])
      expect(yield* attemptTimes({ ...defaults, maxAttempts: 1 })).toHaveLength(1)
    })
  )

  it.effect("RTY-02 a wait above 2^31-1 ms lasts its full time", () =>
    Effect.gen(function* () {
      const long = 2 ** 31 + 5
      const policy = { ...defaults, maxAttempts: 2, initialBackoffMillis: long, maxBackoffMillis: 2 ** 40 }
      expect(waits(yield* attemptTimes(policy))).toEqual([long])
    })
  )

  it.effect("RTY-02 the schedule draws jitter from Random: spread around the plain wait, never over the cap", () =>
    Effect.gen(function* () {
      const policy = { ...defaults, maxAttempts: 200, initialBackoffMillis: 1500, multiplier: 1, jitter: 0.5 }
      const all = waits(yield* attemptTimes(policy))
      expect(all).toHaveLength(199)
      expect(Math.min(...all)).toBeGreaterThanOrEqual(750)
      expect(Math.max(...all)).toBe(2000)
      expect(new Set(all).size).toBeGreaterThan(50)
    }).pipe(Random.withSeed(7))
  )
})
