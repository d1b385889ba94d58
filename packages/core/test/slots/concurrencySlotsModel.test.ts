import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as ConcurrencySlots from "../../src/internal/slots/concurrencySlots.ts"
import { keeping, once } from "./deliveries.ts"

const mostly = fc.constantFrom(true, true, true, false)

/** A worker that handles records one after the other, each for some milliseconds, with slots of both limits or only of the inner one. */
const party = fc.record({
  handlerMillis: fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 4 }),
  isTier: mostly,
  keepsItsSlot: mostly,
  beginsMillis: fc.nat({ max: 3 }),
  stopsMillis: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.nat({ max: 10 }) })
})
type Party = typeof party extends fc.Arbitrary<infer A> ? A : never

/** A stoppable gate that wakes its waiters. */
const makeGate = () => {
  const listeners = new Set<() => void>()
  return {
    ...{ stopping: false, ending: false, open: true, mayWait: true, current: undefined, runnable: Effect.void },
    onStop(listener: () => void) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    stop() {
      this.stopping = this.ending = true
      this.open = false
      for (const listener of Array.from(listeners)) listener()
    }
  }
}

/** Runs all parties; answers how many records each has handled, once nothing can happen any more. */
const runAll = (parties: ReadonlyArray<Party>, most: { readonly tier: number; readonly all: number }) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const slots = ConcurrencySlots.make(most.all)
    const inner = { slots: [slots], breaker: undefined, clock }
    const tier = { ...inner, slots: [ConcurrencySlots.make(most.tier), slots] }
    const running = { tier: 0, all: 0 }
    const start = ({ handlerMillis, isTier, keepsItsSlot, beginsMillis, stopsMillis }: Party) => {
      const limits = isTier ? tier : inner
      const gate = makeGate()
      const lease = keeping(limits, gate)
      let handled = 0
      const handle = (millis: number) =>
        Effect.gen(function* () {
          running.all++
          if (isTier) running.tier++
          assert.isAtMost(running.all, most.all)
          assert.isAtMost(running.tier, most.tier)
          if (millis > 0) yield* Effect.sleep(millis)
          handled++
        }).pipe(
          Effect.onExit(() =>
            Effect.sync(() => {
              running.all--
              if (isTier) running.tier--
            })
          )
        )
      const one = (millis: number) =>
        Effect.suspend(() => {
          if (!keepsItsSlot) return once(limits, gate, () => handle(millis))
          return lease.handles(clock.currentTimeMillisUnsafe(), () => handle(millis))
        })
      const handlesAll = Effect.ensuring(
        Effect.forEach(handlerMillis, one, { discard: true }),
        Effect.sync(lease.release)
      )
      const stopping =
        stopsMillis === undefined
          ? Effect.void
          : Effect.delay(
              Effect.sync(() => gate.stop()),
              stopsMillis
            )
      return Effect.gen(function* () {
        yield* Effect.forkChild(stopping)
        const fiber = yield* Effect.forkChild(Effect.delay(handlesAll, beginsMillis))
        return { fiber, handled: () => handled }
      })
    }
    const started = yield* Effect.forEach(parties, start)
    for (let millis = 0; millis < 55; millis++) {
      yield* Effect.repeat(Effect.yieldNow, { times: 10 })
      yield* TestClock.adjust("1 millis")
    }
    return started.map(({ fiber, handled }) => ({ exit: fiber.pollUnsafe(), handled: handled() }))
  })

describe("nested and kept slots under any handlers", () => {
  it("no more handlers than slots run, and all records are handled except those of a stopped partition", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(party, { minLength: 1, maxLength: 4 }),
        fc.record({ tier: fc.integer({ min: 1, max: 2 }), all: fc.integer({ min: 1, max: 3 }) }),
        async (parties, most) => {
          const ends = await Effect.runPromise(Effect.provide(Effect.scoped(runAll(parties, most)), TestClock.layer()))
          ends.forEach(({ exit, handled }, index) => {
            const { handlerMillis, stopsMillis } = parties[index]!
            if (exit === undefined) assert.fail(`party ${index} waits for ever`)
            if (stopsMillis === undefined)
              assert.deepStrictEqual([exit._tag, handled], ["Success", handlerMillis.length])
            else assert.isTrue(Exit.isSuccess(exit) || Exit.hasInterrupts(exit))
          })
        }
      ),
      { numRuns: 300 }
    ))
})
