/**
 * The supervisor of long-lived fibers (ruling 86). A fiber that dies is logged, counted, shown in health, and started again: at once when
 * its owner knows and has dealt with the cause, with backoff otherwise.
 */
import { type Cause, Clock, Effect, Exit, Fiber } from "effect"
import { failureOf, logText } from "./failureText.ts"
import type { Monitor } from "./monitor.ts"

/** A supervised fiber, and what happens around it. */
export interface Supervised {
  /** The fiber's name in log and health, such as `worker 3`. */
  readonly name: string
  readonly monitor: Monitor
  /** Called for every death, for the metric. Does not throw. */
  readonly onDeath?: () => void
  /** Puts in order what the dead fiber left behind. `restart` starts it again at once, `backOff` after a wait. */
  readonly repair?: (cause: Cause.Cause<unknown>) => Effect.Effect<"restart" | "backOff">
}

/** The waits before a restart: doubling from 100 ms to 30 s. A fiber that lived for a minute begins anew. */
const firstWaitMillis = 100
const longestWaitMillis = 30_000
const settledMillis = 60_000

/** Runs the effect in a fiber of its own until it succeeds, and starts it again when it ends in any other way. */
export const supervise = (options: Supervised, effect: Effect.Effect<unknown, unknown>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    let waitMillis = firstWaitMillis
    for (;;) {
      const startedMillis = clock.currentTimeMillisUnsafe()
      const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
      // When the outbox closes, this fiber is interrupted, and the one below it with it.
      const exit = yield* Effect.onInterrupt(Fiber.await(fiber), () => Fiber.interrupt(fiber))
      if (Exit.isSuccess(exit)) return
      const diedMillis = clock.currentTimeMillisUnsafe()
      options.monitor.report("fiber", options.name, failureOf(exit.cause).summary, diedMillis)
      options.onDeath?.()
      yield* Effect.logError(`outbox: fiber '${options.name}' died and is started again: ${logText(exit.cause)}`)
      const repaired = options.repair === undefined ? "backOff" : yield* repairSafely(options.repair, exit.cause)
      if (diedMillis - startedMillis >= settledMillis) waitMillis = firstWaitMillis
      if (repaired === "backOff") {
        yield* Effect.sleep(waitMillis)
        waitMillis = Math.min(longestWaitMillis, waitMillis * 2)
      }
    }
  })

/** A repair that itself dies means backing off. */
const repairSafely = (
  repair: NonNullable<Supervised["repair"]>,
  cause: Cause.Cause<unknown>
): Effect.Effect<"restart" | "backOff"> =>
  Effect.flatMap(
    Effect.forkChild(
      Effect.suspend(() => repair(cause)),
      { startImmediately: true }
    ),
    (fiber) =>
      Effect.map(
        Effect.onInterrupt(Fiber.await(fiber), () => Fiber.interrupt(fiber)),
        (exit) => (Exit.isSuccess(exit) ? exit.value : "backOff")
      )
  )
