import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Latch } from "effect"
import { TestClock } from "effect/testing"
import * as CircuitBreaker from "../../src/CircuitBreaker.ts"
import * as BreakerPermits from "../../src/internal/slots/breakerPermits.ts"
import * as ConcurrencySlots from "../../src/internal/slots/concurrencySlots.ts"
import { DeliveryContext } from "../../src/internal/slots/deliveryContext.ts"
import type { StartGate } from "../../src/internal/slots/startGate.ts"
import { keeping, once } from "./deliveries.ts"

/** An open gate. A fiber yields between its check and its wait; `meanwhile` runs at that point. */
const gateOf = (meanwhile: (gate: { stopping: boolean; ending: boolean }) => void = () => {}) => {
  const gate = {
    stopping: false,
    ending: false,
    open: true,
    mayWait: true,
    current: undefined,
    runnable: Effect.void,
    onStop: () => {
      meanwhile(gate)
      return () => {}
    }
  }
  return gate
}

/** No test here half-opens a breaker. */
const trialOptions = { maxAttempts: 3, giveUpAfterMillis: Infinity, onGathered: () => {}, nowMillis: () => 0 }

const settle = Effect.repeat(Effect.yieldNow, { times: 20 })

describe("a fiber that begins to wait checks its condition again", () => {
  const slots = Effect.gen(function* () {
    const limits = { slots: [ConcurrencySlots.make(1)], breaker: undefined, clock: yield* Clock.Clock }
    const leaves = Latch.makeUnsafe(false)
    yield* Effect.forkChild(
      once(limits, gateOf(), () => leaves.await),
      { startImmediately: true }
    )
    const enter = (gate: StartGate) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(once(limits, gate, () => Effect.void))
        yield* settle
        return fiber.pollUnsafe()?._tag
      })
    return { leaves, enter }
  })

  it.effect("it takes a slot that became free meanwhile", () =>
    Effect.gen(function* () {
      const { leaves, enter } = yield* slots
      expect(yield* enter(gateOf())).toBe(undefined)
      expect(yield* enter(gateOf(() => leaves.openUnsafe()))).toBe("Success")
    })
  )

  it.effect("it does not wait for a slot after a stop meanwhile", () =>
    Effect.gen(function* () {
      const { enter } = yield* slots
      expect(yield* enter(gateOf((gate) => (gate.stopping = gate.ending = true)))).toBe("Failure")
    })
  )

  it.effect("a waiter that is called while its partition is paused passes the slot to the next", () =>
    Effect.gen(function* () {
      const { leaves, enter } = yield* slots
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
        const limits = { slots: [], breaker: BreakerPermits.make(breaker, trialOptions), clock: yield* Clock.Clock }
        yield* breaker.forceOpen
        const gate = gateOf((own) => {
          if (meanwhile === "reset") Effect.runSync(breaker.reset)
          if (meanwhile === "stop") own.stopping = own.ending = true
        })
        const fiber = yield* Effect.forkChild(once(limits, gate, () => Effect.void))
        yield* settle
        expect(fiber.pollUnsafe()?._tag).toBe(outcome)
      }).pipe(Effect.scoped)
    )
  }

  it.effect(
    "ruling 28 a later attempt whose breaker opened while it waited for its slot does not run on its old permit",
    () =>
      Effect.gen(function* () {
        const breaker = yield* CircuitBreaker.make()
        const limits = { slots: [], breaker: BreakerPermits.make(breaker, trialOptions), clock: yield* Clock.Clock }
        const delivery = new DeliveryContext(limits, 0)
        const fails = delivery.admit(gateOf(), () => Effect.fail("down"))
        expect(yield* Effect.flip(fails)).toBe("down")
        yield* breaker.forceOpen
        let calls = 0
        const again = delivery.admit({ ...gateOf(), mayWait: false }, () => Effect.sync(() => calls++))
        expect((yield* Effect.exit(again))._tag).toBe("Failure")
        expect(calls).toBe(0)
      }).pipe(Effect.scoped)
  )
})

describe("a slot lease that is kept from handler to handler", () => {
  const turns = Effect.gen(function* () {
    const limits = { slots: [ConcurrencySlots.make(1)], breaker: undefined, clock: yield* Clock.Clock }
    const calls: Array<string> = []
    /** Somebody who waits for the place, and has it until told to leave. */
    const waiter = (name: string) =>
      Effect.gen(function* () {
        const leaves = Latch.makeUnsafe(false)
        const run = () =>
          Effect.andThen(
            Effect.sync(() => calls.push(name)),
            leaves.await
          )
        yield* Effect.forkChild(once(limits, gateOf(), run), { startImmediately: true })
        return leaves
      })
    return { limits, lease: keeping(limits, gateOf()), waiter, calls }
  })

  it.effect("it lasts a millisecond while another partition waits, even when the clock is set meanwhile", () =>
    Effect.gen(function* () {
      for (const laterMillis of [101, 50]) {
        const { lease, waiter, calls } = yield* turns
        expect(lease.takes(100)).toBe(true)
        yield* waiter("other")
        expect(lease.takes(100)).toBe(true)
        expect(calls).toEqual([])
        expect(lease.takes(laterMillis)).toBe(false)
        yield* settle
        expect(calls).toEqual(["other"])
      }
    })
  )

  it.effect("it lasts as long as no other partition waits", () =>
    Effect.gen(function* () {
      const { lease, waiter, calls } = yield* turns
      for (let millis = 0; millis < 5; millis++) expect(lease.takes(millis)).toBe(true)
      lease.release()
      lease.release()
      yield* waiter("first")
      yield* waiter("second")
      expect(calls).toEqual(["first"])
    })
  )

  it.effect("a waiter also keeps its slot, from the time that it got it", () =>
    Effect.gen(function* () {
      const { limits, lease, waiter, calls } = yield* turns
      const leaves = yield* waiter("first")
      const fiber = yield* Effect.forkChild(
        lease.waits(0, () => Effect.sync(() => calls.push("turn"))),
        { startImmediately: true }
      )
      yield* TestClock.adjust("20 millis")
      expect(fiber.pollUnsafe()).toBe(undefined)
      leaves.openUnsafe()
      yield* settle
      yield* waiter("last")
      expect(keeping(limits, gateOf()).takes(20)).toBe(false)
      expect(lease.takes(20)).toBe(true)
      expect(calls).toEqual(["first", "turn"])
      expect(lease.takes(21)).toBe(false)
      yield* settle
      expect(calls).toEqual(["first", "turn", "last"])
    })
  )

  it.effect("work of the next holder does not count as the waiter's time, and lasts at most a lease", () =>
    Effect.gen(function* () {
      let nowMillis = 100
      const clock = { ...(yield* Clock.Clock), currentTimeMillisUnsafe: () => nowMillis }
      const limits = { slots: [ConcurrencySlots.make(1)], breaker: undefined, clock }
      const calls: Array<string> = []
      /** Handlers that keep the event loop for 50 milliseconds each, until there are no more. */
      const handles = (name: string, count: number) => {
        const lease = keeping(limits, gateOf())
        const one = Effect.suspend(() =>
          lease.handles(nowMillis, () =>
            Effect.sync(() => {
              nowMillis += 50
              calls.push(`${name} ${lease.delivery.clock.spentMillis()}`)
            })
          )
        )
        return { lease, all: Effect.ensuring(Effect.repeat(one, { times: count - 1 }), Effect.sync(lease.release)) }
      }
      const first = handles("a", 2)
      expect(first.lease.takes(nowMillis)).toBe(true)
      yield* Effect.forkChild(handles("b", 3).all, { startImmediately: true })
      nowMillis++
      yield* first.all
      yield* settle
      expect(calls).toEqual(["b 50", "a 50", "b 50", "a 50", "b 50"])
    })
  )

  it.effect("the previous holder reports its record's outcome before the next one runs", () =>
    Effect.gen(function* () {
      const { lease, waiter, calls } = yield* turns
      expect(lease.takes(100)).toBe(true)
      yield* waiter("other")
      lease.release()
      expect(calls).toEqual([])
      yield* settle
      expect(calls).toEqual(["other"])
    })
  )

  it.effect("nothing is handled in the lease while its partition is paused or stops", () =>
    Effect.gen(function* () {
      const { limits } = yield* turns
      const gate = gateOf()
      const lease = keeping(limits, gate)
      expect(lease.takes(0)).toBe(true)
      gate.open = false
      expect(lease.takes(0)).toBe(false)
      gate.open = true
      expect(lease.takes(0)).toBe(true)
      gate.stopping = true
      expect(lease.takes(0)).toBe(false)
    })
  )

  it.effect(
    "a waiter for the outer of two slots holds no inner slot: the holder of the outer one may wait for it",
    () =>
      Effect.gen(function* () {
        const clock = yield* Clock.Clock
        const both = { slots: [ConcurrencySlots.make(1), ConcurrencySlots.make(1)], breaker: undefined, clock }
        const calls: Array<string> = []
        /** One handler after the other, which takes a millisecond each. */
        const runsTwice = (name: string) => {
          const lease = keeping(both, gateOf())
          const one = Effect.suspend(() =>
            lease.handles(clock.currentTimeMillisUnsafe(), () =>
              Effect.delay(
                Effect.sync(() => calls.push(name)),
                "1 millis"
              )
            )
          )
          return Effect.ensuring(Effect.andThen(one, one), Effect.sync(lease.release))
        }
        yield* Effect.forkChild(runsTwice("a"))
        yield* Effect.forkChild(runsTwice("b"))
        for (let millis = 0; millis < 10; millis++) {
          yield* settle
          yield* TestClock.adjust("1 millis")
        }
        expect(calls).toEqual(["a", "b", "a", "b"])
      })
  )

  it.effect("a fiber that waits out a pause holds no slot, whichever it waited for when the pause began", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const slots = ConcurrencySlots.make(1)
      const all = { slots: [slots], breaker: undefined, clock }
      const tier = { ...all, slots: [ConcurrencySlots.make(1), slots] }
      const calls: Array<string> = []
      const called = (name: string) => () => Effect.sync(() => calls.push(name))
      const leaves = Latch.makeUnsafe(false)
      yield* Effect.forkChild(
        once(all, gateOf(), () => leaves.await),
        { startImmediately: true }
      )
      const resumed = Latch.makeUnsafe(false)
      const paused = { ...gateOf(), runnable: resumed.await }
      yield* Effect.forkChild(once(tier, paused, called("paused")), { startImmediately: true })
      paused.open = false
      yield* Effect.forkChild(once(tier, gateOf(), called("other")), { startImmediately: true })
      leaves.openUnsafe()
      yield* settle
      expect(calls).toEqual(["other"])
      paused.open = true
      resumed.openUnsafe()
      yield* settle
      expect(calls).toEqual(["other", "paused"])
    })
  )

  it.effect("nor does a fiber that waited for the circuit breaker", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const breaker = yield* CircuitBreaker.make()
      const all = { slots: [ConcurrencySlots.make(1)], breaker: BreakerPermits.make(breaker, trialOptions), clock }
      const calls: Array<string> = []
      const called = (name: string) => () => Effect.sync(() => calls.push(name))
      yield* breaker.forceOpen
      const resumed = Latch.makeUnsafe(false)
      const paused = { ...gateOf(), runnable: resumed.await }
      yield* Effect.forkChild(once(all, paused, called("paused")), { startImmediately: true })
      paused.open = false
      yield* breaker.reset
      yield* settle
      yield* once(all, gateOf(), called("other"))
      expect(calls).toEqual(["other"])
      paused.open = true
      resumed.openUnsafe()
      yield* settle
      expect(calls).toEqual(["other", "paused"])
    }).pipe(Effect.scoped)
  )
})
