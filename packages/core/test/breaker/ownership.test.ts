import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Option, Scope, Stream } from "effect"
import { MaxOpsBeforeYield } from "effect/Scheduler"
import { TestClock } from "effect/testing"
import * as CircuitBreaker from "../../src/CircuitBreaker.ts"

const single = {
  slidingWindowSize: 1,
  minimumNumberOfCalls: 1,
  permittedNumberOfCallsInHalfOpenState: 1,
  waitDurationInOpenState: "1 minute"
} as const

const failing = (breaker: CircuitBreaker.CircuitBreaker) => Effect.exit(breaker.protect(Effect.fail("down")))

/** A breaker that has just half-opened. */
const halfOpen = Effect.fnUntraced(function* (options: CircuitBreaker.Options = {}) {
  const breaker = yield* CircuitBreaker.make({ ...single, ...options })
  yield* failing(breaker)
  yield* TestClock.adjust("1 minute")
  expect(breaker.stateUnsafe()).toBe("HALF_OPEN")
  return breaker
})

describe("CircuitBreaker: permits, listeners and the wait", () => {
  it.effect("CB-11 ruling 27 a call that is interrupted at any step gives its permit back", () =>
    Effect.gen(function* () {
      for (let operations = 3; operations <= 12; operations++) {
        for (let turns = 0; turns <= 12; turns++) {
          const breaker = yield* halfOpen()
          const call = Effect.provideService(breaker.protect(Effect.never), MaxOpsBeforeYield, operations)
          const fiber = yield* Effect.forkChild(call)
          for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
          yield* Fiber.interrupt(fiber)
          expect([operations, turns, breaker.tryAcquireUnsafe(0) !== undefined]).toEqual([operations, turns, true])
        }
      }
    })
  )

  it.effect("CB-11 a predicate that throws counts as a failure, and its permit is returned", () =>
    Effect.gen(function* () {
      const breaker = yield* halfOpen()
      const isFailure = () => {
        throw new Error("predicate")
      }
      const exit = yield* Effect.exit(breaker.protect(Effect.fail("down"), { isFailure }))
      expect(exit).toEqual(Exit.fail("down"))
      expect(breaker.stateUnsafe()).toBe("OPEN")
    })
  )

  it.effect("CB-09 ruling 27 returning a permit twice does not raise the cap", () =>
    Effect.gen(function* () {
      const breaker = yield* halfOpen({ permittedNumberOfCallsInHalfOpenState: 2 })
      const first = breaker.tryAcquireUnsafe(0)!
      breaker.recordUnsafe(first, "success", 0, 0)
      breaker.recordUnsafe(first, "success", 0, 0)
      breaker.releaseUnsafe(first)
      expect(breaker.stateUnsafe()).toBe("HALF_OPEN")
      expect(breaker.tryAcquireUnsafe(0)).toBeDefined()
      expect(breaker.tryAcquireUnsafe(0)).toBeUndefined()
    })
  )

  it.effect("C07 of calls that start together at the half-opening, exactly the permitted ones run", () =>
    Effect.gen(function* () {
      const breaker = yield* halfOpen()
      let running = 0
      const call = Effect.andThen(
        Effect.sync(() => running++),
        Effect.andThen(Effect.sleep("500 millis"), Effect.fail("down"))
      )
      const fiber = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 60 }), () => Effect.flip(breaker.protect(call)), {
          concurrency: "unbounded"
        })
      )
      yield* TestClock.adjust("500 millis")
      const errors = yield* Fiber.join(fiber)
      expect(running).toBe(1)
      expect(errors.filter((error) => error === "down")).toHaveLength(1)
      expect(yield* breaker.snapshot).toMatchObject({ state: "OPEN", nextProbeAtMillis: 120_500 })
    })
  )

  it.effect("CB-10 a change has the counts that led to it, the last call included", () =>
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker.make({ ...single, permittedNumberOfCallsInHalfOpenState: 2 })
      const changes: Array<unknown> = []
      breaker.onChange(({ to, snapshot }) => changes.push([to, snapshot.state, snapshot.calls, snapshot.failureRate]))
      yield* failing(breaker)
      yield* TestClock.adjust("1 minute")
      yield* breaker.protect(Effect.void)
      yield* failing(breaker)
      expect(changes).toEqual([
        ["OPEN", "OPEN", 1, 100],
        ["HALF_OPEN", "HALF_OPEN", 0, 0],
        ["OPEN", "OPEN", 2, 50]
      ])
    })
  )

  it.effect("listeners see changes in order, also a change that another listener causes", () =>
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker.make(single)
      const seen: Array<CircuitBreaker.State> = []
      breaker.onChange(({ to }) => {
        if (to === "OPEN") Effect.runSync(breaker.reset)
        throw new Error("listener")
      })
      const remove = breaker.onChange(({ to }) => seen.push(to))
      yield* failing(breaker)
      expect(seen).toEqual(["OPEN", "CLOSED"])
      remove()
      yield* breaker.forceOpen
      expect(seen).toHaveLength(2)
    })
  )

  it.effect("commands that change no state notify no listener; a reset while closed still forgets running calls", () =>
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker.make(single)
      let changes = 0
      breaker.onChange(() => changes++)
      const permit = breaker.tryAcquireUnsafe(0)!
      yield* breaker.reset
      breaker.recordUnsafe(permit, "failure", 0, 0)
      expect(yield* breaker.state).toBe("CLOSED")
      yield* breaker.forceOpen
      yield* breaker.forceOpen
      yield* breaker.disable
      yield* breaker.disable
      expect(changes).toBe(2)
    })
  )

  it.effect("the changes are a stream", () =>
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker.make(single)
      const fiber = yield* Effect.forkChild(breaker.changes.pipe(Stream.take(2), Stream.runCollect), {
        startImmediately: true
      })
      yield* TestClock.adjust(1)
      yield* failing(breaker)
      yield* TestClock.adjust("1 minute")
      expect((yield* Fiber.join(fiber)).map(({ from, to }) => `${from} ${to}`)).toEqual([
        "CLOSED OPEN",
        "OPEN HALF_OPEN"
      ])
    })
  )

  it.effect("a wait that a command cuts short runs no more probes", () =>
    Effect.gen(function* () {
      const asked: Array<number> = []
      let interrupted = 0
      const probe = Effect.andThen(
        Effect.clockWith((clock) => Effect.sync(() => asked.push(clock.currentTimeMillisUnsafe()))),
        Effect.onInterrupt(Effect.sleep("5 seconds"), () => Effect.sync(() => interrupted++))
      )
      const breaker = yield* CircuitBreaker.make({ ...single, probe })
      yield* failing(breaker)
      yield* TestClock.adjust("30 seconds")
      yield* breaker.reset
      yield* failing(breaker)
      yield* TestClock.adjust("1 minute")
      expect(asked).toEqual([90_000])
      yield* TestClock.adjust("2 seconds")
      const refused = yield* Effect.flip(breaker.protect(Effect.void))
      expect(refused).toMatchObject({ state: "OPEN", retryInMillis: 0 })
      // A probe that is being asked is interrupted.
      yield* breaker.forceOpen
      yield* TestClock.adjust(1)
      expect(interrupted).toBe(1)
      yield* TestClock.adjust("1 hour")
      expect([asked.length, breaker.stateUnsafe()]).toEqual([1, "FORCED_OPEN"])
    })
  )

  it.live("ruling 36 neither a reset nor the end of the scope leaves a timer on the real clock", () =>
    Effect.gen(function* () {
      const timers = Effect.andThen(
        Effect.yieldNow,
        Effect.sync(() => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length)
      )
      const before = yield* timers
      const during = yield* Effect.scoped(
        Effect.gen(function* () {
          const breaker = yield* CircuitBreaker.make(single)
          yield* failing(breaker)
          const open = yield* timers
          yield* breaker.reset
          const closed = yield* timers
          yield* failing(breaker)
          return [open, closed, yield* timers]
        })
      )
      expect([...during, yield* timers]).toEqual([before + 1, before, before + 1, before])
    })
  )

  it.effect("a probe that interrupts itself counts as failed", () =>
    Effect.gen(function* () {
      let asked = 0
      const breaker = yield* CircuitBreaker.make({
        ...single,
        probe: Effect.suspend(() => (asked++ === 0 ? Effect.interrupt : Effect.void))
      })
      yield* failing(breaker)
      yield* TestClock.adjust("1 minute")
      expect([asked, breaker.stateUnsafe()]).toEqual([1, "OPEN"])
      yield* TestClock.adjust("1 minute")
      expect([asked, breaker.stateUnsafe()]).toEqual([2, "HALF_OPEN"])
    })
  )

  it.effect("after its scope is closed it waits no more, and starts no wait", () =>
    Effect.gen(function* () {
      for (const closesFirst of [false, true]) {
        let asked = 0
        const scope = yield* Scope.make()
        const probe = Effect.sync(() => asked++)
        const breaker = yield* Scope.provide(CircuitBreaker.make({ ...single, probe }), scope)
        if (!closesFirst) yield* failing(breaker)
        yield* Scope.close(scope, Exit.void)
        if (closesFirst) yield* failing(breaker)
        yield* TestClock.adjust("1 hour")
        expect([asked, breaker.stateUnsafe()]).toEqual([0, "OPEN"])
      }
    })
  )

  it.effect("a refusal names the breaker", () =>
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker.make({ ...single, name: "gateway" })
      yield* failing(breaker)
      const refused = yield* Effect.flip(breaker.protect(Effect.void))
      expect(Option.fromUndefinedOr(refused.name)).toEqual(Option.some("gateway"))
      expect(refused.message).toContain("'gateway' is OPEN")
    })
  )
})
