/**
 * The time that a circuit breaker stays open, and the question to the dependency at its end. Owns the only fiber of a breaker: at most one runs, while it is
 * open, and none after the scope is closed.
 */
import { Clock, Effect, Exit, type Fiber, type Scope } from "effect"
import * as Clocks from "../base/clocks.ts"

export interface OpenWaitOptions<R> {
  /** When the wait is over, epoch milliseconds by the clock of its beginning; undefined while the breaker is not open. */
  readonly untilMillis: () => number | undefined
  /** Its success ends the wait; without one the time alone does. */
  readonly probe: Effect.Effect<unknown, unknown, R> | undefined
  readonly onOver: () => void
  /** Must move `untilMillis` on. */
  readonly onProbeFailed: () => void
}

export interface OpenWait {
  readonly start: () => void
  /** Interrupts the wait, and the probe if it is being asked. */
  readonly stop: () => void
}

/** Wakes up at least once a day: no timer gets too long for the platform. */
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

  /** A wall clock that is set neither prolongs nor shortens the wait. */
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
      // A probe may itself have changed the breaker, which ends this wait.
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
      if (!isClosed) fiber = fork(wait(started))
    },
    stop
  }
})
