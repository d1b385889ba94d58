/** Keeps a background fiber running: one that dies is logged and started again with backoff (ruling 86). */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as LogLine from "./logLine.ts"
import { restartBackoff } from "./restartBackoff.ts"

/** Runs the loop until it ends by itself, or is interrupted. `name` is the loop's name in the log. */
export const keepRunning = <A, E, R>(name: string, loop: Effect.Effect<A, E, R>): Effect.Effect<A, never, R> =>
  loop.pipe(
    Effect.catchDefect((defect) => Effect.fail(defect)),
    Effect.tapError((defect) =>
      LogLine.error(`The background loop '${name}' died; it is started again with backoff`, Cause.die(defect))
    ),
    Effect.retry(restartBackoff),
    Effect.orDie
  )
