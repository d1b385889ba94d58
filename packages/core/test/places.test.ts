import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Latch } from "effect"
import * as CircuitBreaker from "../src/CircuitBreaker.ts"
import * as BreakerGate from "../src/internal/breakerGate.ts"
import * as Places from "../src/internal/places.ts"

/** A gate that nothing holds. What happens between the look of a fiber and its wait, since it yielded there, is `meanwhile`. */
const gateOf = (meanwhile: (gate: { stopping: boolean; ending: boolean }) => void = () => {}) => {
  const gate = {
    stopping: false,
    ending: false,
    open: true,
    patient: true,
    runnable: Effect.void,
    onStop: () => {
      meanwhile(gate)
      return () => {}
    }
  }
  return gate
}

const settle = Effect.repeat(Effect.yieldNow, { times: 20 })

describe("who begins to wait looks again", () => {
  const places = Effect.gen(function* () {
    const made = Places.make(1, yield* Clock.Clock)
    const leaves = Latch.makeUnsafe(false)
    yield* Effect.forkChild(
      made.within(gateOf(), Places.timerFrom(0), () => leaves.await),
      { startImmediately: true }
    )
    const enter = (gate: Places.Gate) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(made.within(gate, Places.timerFrom(0), () => Effect.void))
        yield* settle
        return fiber.pollUnsafe()?._tag
      })
    return { leaves, enter }
  })

  it.effect("a place that became free meanwhile is taken", () =>
    Effect.gen(function* () {
      const { leaves, enter } = yield* places
      expect(yield* enter(gateOf())).toBe(undefined)
      expect(yield* enter(gateOf(() => leaves.openUnsafe()))).toBe("Success")
    })
  )

  it.effect("a stop meanwhile sends away who begins to wait for a place", () =>
    Effect.gen(function* () {
      const { enter } = yield* places
      expect(yield* enter(gateOf((gate) => (gate.stopping = gate.ending = true)))).toBe("Failure")
    })
  )

  it.effect("who is called while its partition is paused leaves the place to the next", () =>
    Effect.gen(function* () {
      const { leaves, enter } = yield* places
      const paused = { ...gateOf(), runnable: Effect.never }
      expect(yield* enter(paused)).toBe(undefined)
      expect(yield* enter(gateOf(() => (paused.open = false)))).toBe(undefined)
      leaves.openUnsafe()
      expect(yield* enter(gateOf())).toBe("Success")
    })
  )

  for (const [name, meanwhile, outcome] of [
    ["a permit that became free meanwhile is taken", "reset", "Success"],
    ["a stop meanwhile sends away who begins to wait for a permit", "stop", "Failure"],
    ["nothing happens meanwhile: it waits", "nothing", undefined]
  ] as const) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const breaker = yield* CircuitBreaker.make()
        const permits = BreakerGate.make(breaker, yield* Clock.Clock)
        yield* breaker.forceOpen
        const gate = gateOf((own) => {
          if (meanwhile === "reset") Effect.runSync(breaker.reset)
          if (meanwhile === "stop") own.stopping = own.ending = true
        })
        const fiber = yield* Effect.forkChild(permits.within(gate, Places.timerFrom(0), () => Effect.void))
        yield* settle
        expect(fiber.pollUnsafe()?._tag).toBe(outcome)
      }).pipe(Effect.scoped)
    )
  }

  it.effect(
    "ruling 28 a later attempt whose breaker opened while it waited for its turn does not run on the permit it had",
    () =>
      Effect.gen(function* () {
        const breaker = yield* CircuitBreaker.make()
        const permits = BreakerGate.make(breaker, yield* Clock.Clock)
        const timer = Places.timerFrom(0)
        const fails = permits.within(gateOf(), timer, () => Effect.fail("down"))
        expect(yield* Effect.flip(fails)).toBe("down")
        yield* breaker.forceOpen
        let calls = 0
        const again = permits.within({ ...gateOf(), patient: false }, timer, () => Effect.sync(() => calls++))
        expect((yield* Effect.exit(again))._tag).toBe("Failure")
        expect(calls).toBe(0)
      }).pipe(Effect.scoped)
  )
})
