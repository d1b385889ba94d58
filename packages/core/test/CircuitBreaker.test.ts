import { describe, expect, it } from "@effect/vitest"
import { Data, Duration, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as CircuitBreaker from "../src/CircuitBreaker.ts"
import { ofCalls, ofSeconds } from "../src/internal/breaker/callWindow.ts"
import * as BreakerSettings from "../src/internal/breaker/settings.ts"

class Down extends Data.TaggedError("Down") {}

const fail = Effect.fail(new Down())
const calls = (breaker: CircuitBreaker.CircuitBreaker, outcomes: string) =>
  Effect.forEach(Array.from(outcomes), (outcome) =>
    Effect.exit(breaker.protect(outcome === "f" ? fail : outcome === "s" ? Effect.sleep("6 seconds") : Effect.void))
  )
const state = (breaker: CircuitBreaker.CircuitBreaker) => breaker.stateUnsafe()
const paths = (options: CircuitBreaker.Options) => BreakerSettings.problems(options).map(({ path }) => path)

describe("CircuitBreaker", () => {
  it.effect("CB-01 defaults are those of connector seed §4.1", () =>
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker.make()
      yield* calls(breaker, "fffffffff")
      expect(state(breaker)).toBe("CLOSED")
      yield* calls(breaker, "f")
      expect(yield* breaker.snapshot).toMatchObject({ state: "OPEN", nextProbeAtMillis: 60_000 })
      yield* TestClock.adjust("59999 millis")
      expect(state(breaker)).toBe("OPEN")
      yield* TestClock.adjust(1)
      expect(state(breaker)).toBe("HALF_OPEN")
      yield* calls(breaker, "....")
      expect(state(breaker)).toBe("HALF_OPEN")
      yield* calls(breaker, ".")
      expect(state(breaker)).toBe("CLOSED")
    }).pipe(Effect.scoped)
  )

  it.effect(
    "CB-04 C15 ruling 26 opens on exactly the minimum-th call, at the threshold, and evicted results no longer count",
    () =>
      Effect.gen(function* () {
        const half = yield* CircuitBreaker.make({ slidingWindowSize: 10, minimumNumberOfCalls: 10 })
        yield* calls(half, "f.f.f.f.f")
        expect(state(half)).toBe("CLOSED")
        // The rate is what counts, not what the last call came to.
        yield* calls(half, ".")
        expect(state(half)).toBe("OPEN")
        const exact = yield* CircuitBreaker.make({ slidingWindowSize: 10, minimumNumberOfCalls: 10 })
        yield* calls(exact, ".f.f.f.f.")
        expect(state(exact)).toBe("CLOSED")
        yield* calls(exact, "f")
        expect(state(exact)).toBe("OPEN")
        const evicting = yield* CircuitBreaker.make({
          slidingWindowSize: 10,
          minimumNumberOfCalls: 10,
          failureRateThreshold: 60
        })
        yield* calls(evicting, "fffff.....fffff")
        expect(state(evicting)).toBe("CLOSED")
        const single = yield* CircuitBreaker.make({
          slidingWindowSize: 1,
          minimumNumberOfCalls: 1,
          failureRateThreshold: 100
        })
        yield* calls(single, "...f")
        expect(state(single)).toBe("OPEN")
      }).pipe(Effect.scoped)
  )

  it.effect("CB-05 slow calls open it though they succeed", () =>
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker.make({
        slidingWindowSize: 5,
        minimumNumberOfCalls: 5,
        slowCallRateThreshold: 80
      })
      const fiber = yield* Effect.forkChild(calls(breaker, ".ssss"))
      yield* TestClock.adjust("24 seconds")
      yield* Fiber.join(fiber)
      expect(yield* breaker.snapshot).toMatchObject({ state: "OPEN", slowCallRate: 0 })
      expect(state(breaker)).toBe("OPEN")
    }).pipe(Effect.scoped)
  )

  it("CB-06 C15 ruling 26 impossible settings are refused, all at once", () => {
    expect(paths({ slidingWindowSize: 5, minimumNumberOfCalls: 10 })).toEqual(["minimumNumberOfCalls"])
    expect(paths({ slidingWindowSize: 5, minimumNumberOfCalls: 10, slidingWindowType: "time" })).toEqual([])
    for (const failureRateThreshold of [0, 101, -1, Number.NaN, Number.POSITIVE_INFINITY])
      expect(paths({ failureRateThreshold })).toEqual(["failureRateThreshold"])
    expect(paths({ failureRateThreshold: 0.0001, slowCallRateThreshold: 100 })).toEqual([])
    expect(paths({ waitDurationInOpenState: 0, probeTimeout: 0, slowCallDuration: 0 })).toEqual([
      "waitDurationInOpenState",
      "probeTimeout"
    ])
    expect(
      BreakerSettings.problems({ openBackoff: { multiplier: 2, maxWaitDuration: Duration.seconds(59) } })
    ).toMatchObject([{ path: "openBackoff.maxWaitDuration", found: "59s" }])
    expect(
      paths({
        slidingWindowSize: 0,
        minimumNumberOfCalls: 1.5,
        slowCallRateThreshold: 0,
        slowCallDuration: Number.NaN,
        waitDurationInOpenState: "Infinity",
        permittedNumberOfCallsInHalfOpenState: -1,
        openBackoff: { multiplier: 0.5, maxWaitDuration: -1 },
        probeTimeout: Number.POSITIVE_INFINITY
      })
    ).toHaveLength(10)
  })

  it.effect("CB-09 CB-11 half-open permits are a hard cap, and a returned permit can be taken again", () =>
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker.make({
        slidingWindowSize: 1,
        minimumNumberOfCalls: 1,
        permittedNumberOfCallsInHalfOpenState: 2
      })
      yield* calls(breaker, "f")
      yield* TestClock.adjust("1 minute")
      const [first, second] = [breaker.tryAcquireUnsafe(0), breaker.tryAcquireUnsafe(0)]
      expect([first, second]).not.toContain(undefined)
      expect(breaker.tryAcquireUnsafe(0)).toBeUndefined()
      breaker.releaseUnsafe(first!)
      const third = breaker.tryAcquireUnsafe(0)
      expect(third).toBeDefined()
      breaker.recordUnsafe(second!, "ignored", 0, 0)
      expect(breaker.tryAcquireUnsafe(0)).toBeDefined()
      breaker.recordUnsafe(third!, "success", 0, 0)
      expect(state(breaker)).toBe("HALF_OPEN")
      breaker.recordUnsafe(third!, "success", 0, 0)
      expect(state(breaker)).toBe("CLOSED")
    }).pipe(Effect.scoped)
  )

  it.effect("CB-11 interruption and ignored errors do not count", () =>
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker.make({ slidingWindowSize: 1, minimumNumberOfCalls: 1 })
      const fiber = yield* Effect.forkChild(breaker.protect(Effect.never), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      yield* Effect.exit(breaker.protect(fail, { isFailure: () => false }))
      expect(yield* breaker.snapshot).toMatchObject({ state: "CLOSED", calls: 0 })
      yield* Effect.exit(breaker.protect(Effect.die("defect")))
      expect(state(breaker)).toBe("OPEN")
    }).pipe(Effect.scoped)
  )

  it.effect(
    "CB-10 failing trial calls open it again for a full wait; with backoff for a longer one, up to its limit",
    () =>
      Effect.gen(function* () {
        const breaker = yield* CircuitBreaker.make({
          slidingWindowSize: 1,
          minimumNumberOfCalls: 1,
          permittedNumberOfCallsInHalfOpenState: 1,
          waitDurationInOpenState: "10 seconds",
          openBackoff: { multiplier: 2, maxWaitDuration: "30 seconds" }
        })
        yield* calls(breaker, "f")
        for (const seconds of [10, 20, 30, 30]) {
          yield* TestClock.adjust(seconds * 1_000 - 1)
          expect(state(breaker)).toBe("OPEN")
          yield* TestClock.adjust(1)
          expect(state(breaker)).toBe("HALF_OPEN")
          yield* calls(breaker, "f")
        }
        yield* TestClock.adjust("30 seconds")
        yield* calls(breaker, ".f")
        yield* TestClock.adjust("10 seconds")
        expect(state(breaker)).toBe("HALF_OPEN")
      }).pipe(Effect.scoped)
  )

  it.effect("a probe runs before any call; a probe that hangs is cut off", () =>
    Effect.gen(function* () {
      const answers: Array<Effect.Effect<void, string>> = [
        Effect.fail("down"),
        Effect.never,
        Effect.die("?"),
        Effect.void
      ]
      let asked = 0
      const breaker = yield* CircuitBreaker.make({
        slidingWindowSize: 1,
        minimumNumberOfCalls: 1,
        waitDurationInOpenState: "30 seconds",
        probe: Effect.suspend(() => answers[asked++] ?? Effect.void)
      })
      yield* calls(breaker, "f")
      yield* TestClock.adjust("30 seconds")
      expect([asked, state(breaker)]).toEqual([1, "OPEN"])
      yield* TestClock.adjust("30 seconds")
      expect([asked, state(breaker)]).toEqual([2, "OPEN"])
      yield* TestClock.adjust("40 seconds")
      expect([asked, state(breaker)]).toEqual([3, "OPEN"])
      yield* TestClock.adjust("30 seconds")
      expect([asked, state(breaker)]).toEqual([4, "HALF_OPEN"])
    }).pipe(Effect.scoped)
  )

  for (const [when, lateMillis] of [
    ["after its wait", 0],
    ["whose wait was over as it began", 40_000]
  ] as const) {
    it.effect(
      `CB-09 a probe ${when} that opens the breaker again ends its own wait: the new wait lasts its full time`,
      () =>
        Effect.gen(function* () {
          let asked = 0
          const breaker: CircuitBreaker.CircuitBreaker = yield* CircuitBreaker.make({
            slidingWindowSize: 1,
            minimumNumberOfCalls: 1,
            waitDurationInOpenState: "30 seconds",
            probe: Effect.suspend(() => {
              asked++
              return Effect.andThen(breaker.reset, calls(breaker, "f"))
            })
          })
          yield* TestClock.adjust(lateMillis)
          breaker.recordUnsafe(breaker.tryAcquireUnsafe(0)!, "failure", 0, 0)
          yield* TestClock.adjust(Math.max(0, 30_000 - lateMillis))
          expect([asked, state(breaker)]).toEqual([1, "OPEN"])
          yield* TestClock.adjust("29999 millis")
          expect([asked, state(breaker)]).toEqual([1, "OPEN"])
          yield* TestClock.adjust(1)
          expect(asked).toBe(2)
        }).pipe(Effect.scoped)
    )
  }

  it.effect("C10 a wait above 2^31-1 ms lasts its full time", () =>
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker.make({
        slidingWindowSize: 1,
        minimumNumberOfCalls: 1,
        waitDurationInOpenState: 2 ** 31
      })
      yield* calls(breaker, "f")
      yield* TestClock.adjust(2 ** 31 - 1)
      expect(state(breaker)).toBe("OPEN")
      yield* TestClock.adjust(1)
      expect(state(breaker)).toBe("HALF_OPEN")
    }).pipe(Effect.scoped)
  )

  it.effect("commands: forced open lasts until reset, a disabled breaker counts nothing, refused calls say so", () =>
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker.make({ slidingWindowSize: 1, minimumNumberOfCalls: 1 })
      const changes: Array<string> = []
      breaker.onChange(() => {
        throw new Error("listener")
      })
      breaker.onChange(({ from, to }) => changes.push(`${from} ${to}`))
      yield* breaker.forceOpen
      const refusal = yield* Effect.flip(breaker.protect(Effect.void))
      expect(refusal).toMatchObject({ _tag: "CallNotPermitted", state: "FORCED_OPEN", retryInMillis: undefined })
      yield* TestClock.adjust("1 day")
      expect(state(breaker)).toBe("FORCED_OPEN")
      yield* breaker.disable
      yield* calls(breaker, "ffff")
      expect(state(breaker)).toBe("DISABLED")
      yield* breaker.reset
      yield* calls(breaker, "f")
      expect(yield* Effect.flip(breaker.protect(Effect.void))).toMatchObject({ state: "OPEN", retryInMillis: 60_000 })
      expect(changes).toEqual(["CLOSED FORCED_OPEN", "FORCED_OPEN DISABLED", "DISABLED CLOSED", "CLOSED OPEN"])
    }).pipe(Effect.scoped)
  )

  it.effect("a late result of an older state changes nothing", () =>
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker.make({
        slidingWindowSize: 2,
        minimumNumberOfCalls: 2,
        permittedNumberOfCallsInHalfOpenState: 1
      })
      const late = breaker.tryAcquireUnsafe(0)!
      expect(breaker.isCurrentUnsafe(late)).toBe(true)
      yield* calls(breaker, "ff")
      expect(breaker.isCurrentUnsafe(late)).toBe(false)
      breaker.recordUnsafe(late, "success", 0, 0)
      expect(state(breaker)).toBe("OPEN")
      yield* TestClock.adjust("1 minute")
      breaker.recordUnsafe(late, "success", 0, 0)
      breaker.releaseUnsafe(late)
      expect(state(breaker)).toBe("HALF_OPEN")
      expect(breaker.tryAcquireUnsafe(0)).toBeDefined()
      expect(breaker.tryAcquireUnsafe(0)).toBeUndefined()
    }).pipe(Effect.scoped)
  )

  it.effect("all bad settings are reported at once", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(CircuitBreaker.make({ slidingWindowSize: 0, failureRateThreshold: 0 }))
      expect(Exit.isFailure(exit)).toBe(true)
      const error = yield* Effect.flip(CircuitBreaker.make({ slidingWindowSize: 0, failureRateThreshold: 0 }))
      expect(error.message.split("\n")).toHaveLength(3)
    }).pipe(Effect.scoped)
  )

  const outcome = fc.record({ failed: fc.boolean(), slow: fc.boolean(), afterMillis: fc.nat(3_000) })

  it("a count window counts the last calls", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.array(outcome, { maxLength: 60 }), (size, all) => {
        const window = ofCalls(size)
        for (const [index, { failed, slow }] of all.entries()) {
          window.add(failed, slow, 0)
          const last = all.slice(Math.max(0, index + 1 - size), index + 1)
          expect(window.counts(0)).toEqual({
            calls: last.length,
            failures: last.filter((each) => each.failed).length,
            slow: last.filter((each) => each.slow).length
          })
        }
      })
    )
  })

  it("a time window counts the calls of the last seconds", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.array(outcome, { maxLength: 60 }), (seconds, all) => {
        const window = ofSeconds(seconds)
        let now = 0
        const seen: Array<{ readonly second: number; readonly failed: boolean }> = []
        for (const { failed, slow, afterMillis } of all) {
          now += afterMillis
          window.add(failed, slow, now)
          seen.push({ second: Math.floor(now / 1_000), failed })
          const last = seen.filter(({ second }) => second > Math.floor(now / 1_000) - seconds)
          expect(window.counts(now)).toMatchObject({
            calls: last.length,
            failures: last.filter((each) => each.failed).length
          })
        }
      })
    )
  })
})
