/**
 * Log lines that end nothing: a logger of the program's that throws, or whose Promise is rejected, loses its line, and neither the fiber nor the work that the line is about
 * (ruling 86). `LogLine` is the public module.
 */
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { attend } from "./attend.ts"

/** Writes a line of messages. A `Cause` among them is logged as the cause. */
type Write = (...messages: ReadonlyArray<unknown>) => Effect.Effect<void>

type Loggers = ReadonlySet<Logger.Logger<unknown, unknown>>

/**
 * Runs an effect whose loggers cannot fail: one that throws loses its line, and the others write it. So does an async one that is rejected, which nobody waits for. `onLost`
 * hears of it, and must not throw.
 */
export const guarded = <A, E, R>(
  logging: Effect.Effect<A, E, R>,
  onLost: (error: unknown) => void
): Effect.Effect<A, E, R> =>
  Effect.updateService(
    logging,
    Logger.CurrentLoggers,
    (loggers): Loggers => new Set(Array.from(loggers, (logger) => quiet(logger, onLost)))
  )

const quiet = (logger: Logger.Logger<unknown, unknown>, onLost: (error: unknown) => void) =>
  Logger.make((line) => {
    try {
      attend(logger.log(line), onLost)
    } catch (error) {
      onLost(error)
    }
  })

const safely =
  (write: Write): Write =>
  (...messages) =>
    Effect.catchDefect(
      guarded(write(...messages), () => {}),
      () => Effect.void
    )

/** Logs at level `Debug`. Never fails. */
export const debug: Write = safely(Effect.logDebug)

/** Logs at level `Info`. Never fails. */
export const info: Write = safely(Effect.logInfo)

/** Logs at level `Warn`. Never fails. */
export const warning: Write = safely(Effect.logWarning)

/** Logs at level `Error`. Never fails. */
export const error: Write = safely(Effect.logError)
