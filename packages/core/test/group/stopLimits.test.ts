/** How the time of a stop is shared among its steps. */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import * as StopLimits from "../../src/internal/group/stopLimits.ts"

const steps = ["drain", "commit", "cleanUp", "leave", "release"] as const

/** A stop in which each of the given steps takes as long as it may, and the others take no time; answers how long each took. */
const spent = Effect.fnUntraced(function* (shutdownTimeoutMillis: number, slow: ReadonlyArray<string>) {
  const limits = StopLimits.ofStop({ shutdownTimeoutMillis }, yield* Clock.Clock)
  const millis: Record<string, number> = {}
  for (const step of steps) {
    const took = slow.includes(step) ? limits[step]() : 0
    yield* TestClock.adjust(took)
    millis[step] = took
  }
  return { millis, whole: Object.values(millis).reduce((sum, each) => sum + each, 0) }
})

describe("the time of a stop", () => {
  for (const timeout of [5_000, 10_000, 30_000, 600_000]) {
    it.effect(
      `ruling 83 LIF-12 a stop of ${timeout} ms takes no longer, whichever steps take as long as they may`,
      () =>
        Effect.gen(function* () {
          for (let choice = 0; choice < 2 ** steps.length; choice++) {
            const slow = steps.filter((_, index) => (choice & (1 << index)) !== 0)
            const { whole } = yield* spent(timeout, slow)
            expect(whole, slow.join(", ")).toBeLessThanOrEqual(timeout)
          }
        })
    )
  }

  it.effect("ruling 83 each step has time left, also behind a drain that used up its own", () =>
    Effect.gen(function* () {
      for (const timeout of [0, 1_000, 10_000, 30_000]) {
        const { millis } = yield* spent(timeout, steps)
        for (const step of ["commit", "cleanUp", "leave", "release"]) expect(millis[step]).toBeGreaterThanOrEqual(50)
      }
    })
  )

  it.effect(
    "ruling 83 a timeout that is too short for the steps behind the drain is exceeded by half a second at most",
    () =>
      Effect.gen(function* () {
        for (const timeout of [0, 1, 500, 1_000, 2_000]) {
          expect((yield* spent(timeout, steps)).whole).toBeLessThanOrEqual(timeout + 500)
        }
      })
  )

  it.effect("LIF-12 the drain gets four fifths, and all but five seconds of a long timeout", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const drains = [1_000, 20_000, 30_000, 300_000].map((shutdownTimeoutMillis) =>
        StopLimits.ofStop({ shutdownTimeoutMillis }, clock).drain()
      )
      expect(drains).toEqual([800, 16_000, 25_000, 295_000])
    })
  )

  it("REB-05 the drain of a revoked partition ends before the rebalance timeout, with its commit", () => {
    const limits = StopLimits.ofRevocation({ shutdownTimeoutMillis: 300_000, rebalanceTimeoutMillis: 60_000 })
    expect(limits.drain() + limits.commit()).toBeLessThan(60_000)
    expect(StopLimits.ofRevocation({ shutdownTimeoutMillis: 2_000, rebalanceTimeoutMillis: 60_000 }).drain()).toBe(
      2_000
    )
    expect(StopLimits.ofRevocation({ shutdownTimeoutMillis: 2_000, rebalanceTimeoutMillis: 1_000 }).drain()).toBe(0)
  })
})
