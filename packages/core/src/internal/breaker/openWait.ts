/**
 * Waits while a circuit breaker is open, then runs the optional probe. Owns the only fiber of a breaker: at most one runs while the breaker is open, and none
 * after the scope has closed.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Clocks from "../base/clocks.ts"
import { keepRunning } from "../base/keepRunning.ts"

export interface OpenWaitOptions<R> {
  /** The end of the wait, epoch milliseconds by the clock at the start of the wait; undefined while the breaker is not open. */
  readonly untilMillis: () => number | undefined
  /** Runs when the time is over. Its success ends the wait, its failure starts another wait. Without a probe the time alone ends the wait. */
  readonly probe: Effect.Effect<unknown, unknown, R> | undefined
  readonly onOver: () => void
  /** Must move `untilMillis` to a later time. */
  readonly onProbeFailed: () => void
}

export interface OpenWait {
  readonly start: () => void
  /** Interrupts the wait, and the probe if it is running. */
  readonly stop: () => void
}

/** Platform timers overflow beyond 24.8 days, so the fiber wakes at least once a day. */
const longestSleepMillis = 86_400_000

export const make = Effect.fnUntraced(function* <R>({
  untilMillis,
  probe,
  onOver,
  onProbeFailed
}: OpenWaitOptions<R>): Effect.fn.Return<OpenWait, never, R | Scope.Scope> {
  const clock = yield* Clock.Clock
  const fork = Effect.runForkWith(yield* Effect.context<R>())
  let isClosed = false
  let started = 0
  let fiber: Fiber.Fiber<void> | undefined

  /** Counts down by the monotonic clock: setting the wall clock neither prolongs nor shortens the wait. */
  const countdown = (): (() => number) => {
    const total = (untilMillis() ?? 0) - clock.currentTimeMillisUnsafe()
    const elapsedMillis = Clocks.stopwatch(clock)
    return () => total - elapsedMillis()
  }

  const wait = Effect.fnUntraced(function* (number: number) {
    let restMillis = countdown()
    while (number === started) {
      const rest = restMillis()
      if (rest > 0) {
        yield* Effect.sleep(Math.min(rest, longestSleepMillis))
        continue
      }
      const exit = probe === undefined ? Exit.void : yield* Effect.exit(probe)
      // The probe itself may have changed the breaker, which ended this wait.
      if (number !== started) return
      if (Exit.isFailure(exit)) {
        onProbeFailed()
        restMillis = countdown()
        continue
      }
      fiber = undefined
      return onOver()
    }
  })

  const stop = () => {
    started++
    fiber?.interruptUnsafe()
    fiber = undefined
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      stop()
    })
  )
  return {
    start: () => {
      stop()
      if (!isClosed) fiber = fork(keepRunning("wait of an open breaker", wait(started)))
    },
    stop
  }
})
