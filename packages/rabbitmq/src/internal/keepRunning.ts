/** Keeps a background loop running: one that dies is logged and started again with backoff (ruling 86). */
import * as LogLine from "@eventbus/core/LogLine"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { backoff } from "./backoff.ts"

/** Runs the loop until it ends by itself, or is interrupted. `name` is the loop's name in the log. */
export const keepRunning = <A, R>(name: string, loop: Effect.Effect<A, never, R>): Effect.Effect<A, never, R> => {
  const again = (deaths: number): Effect.Effect<A, never, R> =>
    Effect.catchDefect(loop, (defect) =>
      LogLine.error(`${name} died; it is started again`, Cause.die(defect)).pipe(
        Effect.andThen(backoff(deaths)),
        Effect.andThen(Effect.suspend(() => again(deaths + 1)))
      )
    )
  return again(1)
}
