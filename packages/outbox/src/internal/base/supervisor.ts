/**
 * The supervisor of long-lived fibers (ruling 86). A fiber that dies is logged, counted, shown in health, and started again: at once when
 * its owner knows and has dealt with the cause, with backoff otherwise.
 */
import { UserFunction } from "@eventbus/core"
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { failureOf, logText } from "./failureText.ts"
import { CurrentMonitor, logError, logWarning } from "./log.ts"
import type { Monitor } from "./monitor.ts"

/** How a supervised fiber is put in order after its death, and how it ends. */
export interface Supervision {
  /** Puts in order what the dead fiber left behind. `restart` starts it again at once, `backOff` after a wait. */
  readonly repair?: (cause: Cause.Cause<unknown>) => Effect.Effect<"restart" | "backOff">
  /**
   * How long closing waits for the fiber once it is interrupted. A function of the user's may resist that, and so may the answer of a database: closing goes on
   * without it then. Default 2 seconds, which is more than one call of a user's function takes to end or to be left behind.
   */
  readonly endTimeout?: Duration.Input
}

/** A supervised fiber, and what happens around it. */
export interface Supervised extends Supervision {
  /** The fiber's name in log and health, such as `worker 3`. */
  readonly name: string
  readonly monitor: Monitor
  /** Called for every death, for the metric. Does not throw. */
  readonly onDeath?: () => void
}

/** The waits before a restart: doubling from 100 ms to 30 s. A fiber that lived for a minute begins anew. */
const firstWaitMillis = 100
const longestWaitMillis = 30_000
const settledMillis = 60_000

/** Runs the effect in a fiber of its own until it succeeds, and starts it again when it ends in any other way. */
export const supervise = (options: Supervised, effect: Effect.Effect<unknown, unknown>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const { name, monitor, onDeath, repair, endTimeout = "2 seconds" } = options
    const own = <A, E>(part: Effect.Effect<A, E>) =>
      Effect.exit(UserFunction.runBounded(`outbox: fiber '${name}'`, part, { endTimeout }))
    let waitMillis = firstWaitMillis
    for (;;) {
      const startedMillis = clock.currentTimeMillisUnsafe()
      const exit = yield* own(effect)
      if (Exit.isSuccess(exit)) return
      const diedMillis = clock.currentTimeMillisUnsafe()
      monitor.report("fiber", name, failureOf(exit.cause).summary, diedMillis)
      onDeath?.()
      yield* logError(`outbox: fiber '${name}' died and is started again: ${logText(exit.cause)}`)
      // A repair that itself dies means backing off.
      const repaired = repair === undefined ? undefined : yield* own(Effect.suspend(() => repair(exit.cause)))
      if (diedMillis - startedMillis >= settledMillis) waitMillis = firstWaitMillis
      if (repaired === undefined || Exit.isFailure(repaired) || repaired.value === "backOff") {
        yield* Effect.sleep(waitMillis)
        waitMillis = Math.min(longestWaitMillis, waitMillis * 2)
      }
    }
  }).pipe(Effect.provideService(CurrentMonitor, options.monitor))

/** Releases something, for at most five seconds: a database that does not answer keeps nothing open. A failure is logged; what is not released expires by itself. */
export const releaseBounded = (what: string, call: () => Effect.Effect<unknown, unknown>): Effect.Effect<void> =>
  UserFunction.runBounded(`outbox: ${what}`, UserFunction.callEffect(what, call), { timeout: "5 seconds" }).pipe(
    Effect.catchCause((cause) => logWarning(`outbox: ${what} failed: ${failureOf(cause).summary}`)),
    Effect.asVoid
  )
