/**
 * How a test waits. On a `TestClock`, where time stands still, it yields until every fiber is idle; on any other clock it sleeps.
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as VirtualTime from "../../VirtualTime.ts"

export interface ClockDriver {
  /** Runs everything that is due now. */
  readonly untilIdle: Effect.Effect<void>
  /** Lets time pass. */
  readonly advance: (duration: Duration.Input) => Effect.Effect<void>
  /** Whether the condition becomes true: at once on a `TestClock`, otherwise within the bound. */
  readonly waitUntil: (holds: Effect.Effect<boolean>) => Effect.Effect<boolean>
  /** Runs an effect that takes time to its end; moves a `TestClock` for it. */
  readonly runToEnd: (effect: Effect.Effect<void>) => Effect.Effect<void>
  /** Milliseconds since the driver was made. */
  readonly elapsedMillis: () => number
}

/** Limit of the rounds until idle, for a handler that waits for something real and for an endless loop. */
const mostRounds = 2_000

/** One move of a `TestClock` in `runToEnd`, and the largest number of moves. */
const step = "1 second"
const mostSteps = 600

const lookAgain = "20 millis"

/** `activity` counts events: while it grows, the bus is not idle. `withinMillis` bounds waits on a real clock. */
export const make = Effect.fnUntraced(function* (activity: () => number, withinMillis: number) {
  const clock = yield* Clock.Clock
  const begunMillis = clock.currentTimeMillisUnsafe()
  const elapsedMillis = () => clock.currentTimeMillisUnsafe() - begunMillis
  return isTestClock(clock)
    ? { ...onTestClock(activity), elapsedMillis }
    : { ...onRunningClock(clock, withinMillis), elapsedMillis }
})

const isTestClock = (clock: Clock.Clock): boolean => "adjust" in clock

const onTestClock = (activity: () => number): Omit<ClockDriver, "elapsedMillis"> => {
  const quiet = Effect.gen(function* () {
    for (let round = 0; round < mostRounds; round++) {
      const before = activity()
      yield* VirtualTime.settle
      if (activity() === before) return
    }
  })
  return {
    untilIdle: quiet,
    advance: (duration) => quiet.pipe(Effect.andThen(TestClock.adjust(duration)), Effect.andThen(quiet)),
    waitUntil: (holds) => Effect.andThen(quiet, holds),
    runToEnd: Effect.fnUntraced(function* (effect) {
      const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
      yield* quiet
      for (let moved = 0; moved < mostSteps && fiber.pollUnsafe() === undefined; moved++) {
        yield* VirtualTime.advance(step)
      }
      yield* fiber.pollUnsafe() === undefined ? Effect.asVoid(Fiber.interrupt(fiber)) : Fiber.join(fiber)
    })
  }
}

const onRunningClock = (clock: Clock.Clock, withinMillis: number): Omit<ClockDriver, "elapsedMillis"> => ({
  untilIdle: Effect.void,
  advance: Effect.sleep,
  waitUntil: Effect.fnUntraced(function* (holds) {
    const deadline = clock.currentTimeMillisUnsafe() + withinMillis
    while (!(yield* holds)) {
      if (clock.currentTimeMillisUnsafe() >= deadline) return false
      yield* Effect.sleep(lookAgain)
    }
    return true
  }),
  runToEnd: (effect) => effect
})

/** Runs on the real clock, also where a `TestClock` stands still. */
export const onRealClock = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Clock.Clock, (clock) =>
    isTestClock(clock) ? TestClock.testClockWith((testClock) => testClock.withLive(effect)) : effect
  )
