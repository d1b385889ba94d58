/**
 * A clock that jumps to the next sleep as soon as every fiber is idle, so that waiting costs no real time.
 *
 * A test moves a `TestClock` by hand. On this clock a program runs as it would on a real clock, timeouts and waits included, always in the same
 * order. It serves simulations and programs with many waits.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import { toMillis } from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scheduler from "effect/Scheduler"

interface Sleep {
  readonly atMillis: number
  readonly wake: () => void
}

/**
 * A clock that starts at epoch 0, and the scheduler that drives it. Virtual time goes on while a fiber waits for something real, such as a socket or
 * the promise of a timer.
 */
export const layer: Layer.Layer<never> = Layer.effectContext(
  Effect.sync(() => {
    const time = makeTimeline()
    return Context.make(Clock.Clock, makeClock(time)).pipe(
      Context.add(Scheduler.Scheduler, new Scheduler.MixedScheduler("async", time.enqueue))
    )
  })
)

interface Timeline {
  readonly nowMillis: () => number
  readonly enqueue: (task: () => void) => () => void
  readonly sleep: (millis: number, wake: () => void) => () => void
}

const makeTimeline = (): Timeline => {
  let nowMillis = 0
  let scheduled = false
  let tasks: Array<() => void> = []
  /** Latest first, so that `pop` gives the next one; of equal times `pop` gives the oldest one first. */
  const sleeps: Array<Sleep> = []

  /** Runs in one iteration of the event loop, so that settled promises run in between. */
  const runDue = (): void => {
    scheduled = false
    if (tasks.length === 0) {
      const next = sleeps.pop()
      if (next) {
        nowMillis = next.atMillis
        next.wake()
      }
    }
    const due = tasks
    tasks = []
    for (const task of due) task()
    schedule()
  }
  const schedule = (): void => {
    if (scheduled || (tasks.length === 0 && sleeps.length === 0)) return
    scheduled = true
    setImmediate(runDue)
  }
  return {
    nowMillis: () => nowMillis,
    enqueue: (task) => {
      let cancelled = false
      tasks.push(() => {
        if (!cancelled) task()
      })
      schedule()
      return () => {
        cancelled = true
      }
    },
    sleep: (millis, wake) => {
      const sleep = { atMillis: nowMillis + millis, wake }
      sleeps.splice(indexFor(sleeps, sleep.atMillis), 0, sleep)
      schedule()
      return () => {
        const index = sleeps.indexOf(sleep)
        if (index >= 0) sleeps.splice(index, 1)
      }
    }
  }
}

/** The index of a new sleep: before those that end at the same time or earlier. */
const indexFor = (sleeps: ReadonlyArray<Sleep>, atMillis: number): number => {
  let low = 0
  let high = sleeps.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (sleeps[middle]!.atMillis > atMillis) low = middle + 1
    else high = middle
  }
  return low
}

const makeClock = (time: Timeline): Clock.Clock => {
  const nanos = (): bigint => BigInt(Math.round(time.nowMillis() * 1_000_000))
  return {
    currentTimeMillisUnsafe: time.nowMillis,
    currentTimeMillis: Effect.sync(time.nowMillis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: (duration: Duration.Duration) => {
      const millis = toMillis(duration)
      if (millis <= 0) return Effect.yieldNow
      if (!Number.isFinite(millis)) return Effect.never
      return Effect.callback<void>((resume) => {
        const cancel = time.sleep(millis, () => resume(Effect.void))
        return Effect.sync(cancel)
      })
    }
  }
}
