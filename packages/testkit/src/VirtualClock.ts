/**
 * Time that costs nothing: whenever no fiber has anything left to do, the clock jumps to the next sleep.
 *
 * With `TestClock` a test moves time by hand; here a program just runs, timeouts and waits included, as it would on a real clock,
 * in an order that is always the same. For simulations and for programs that wait in many places.
 */
import { Clock, Context, type Duration, Effect, Layer, Scheduler } from "effect"
import { toMillis } from "effect/Duration"

interface Sleep {
  readonly atMillis: number
  readonly wake: () => void
}

/**
 * A clock that starts at epoch 0, and the scheduler that drives it. Work that waits for something real, such as a promise of a
 * timer or a socket, is not waited for: virtual time goes on meanwhile.
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
  /** Latest first, so that the next one is popped; of equal times the one that came first is popped first. */
  const sleeps: Array<Sleep> = []

  /** One real turn of the event loop: promises that are ready get theirs in between. */
  const turn = (): void => {
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
    setImmediate(turn)
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

/** Where a sleep belongs: before those that end at the same time or earlier. */
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
