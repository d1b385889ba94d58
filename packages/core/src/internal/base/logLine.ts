/**
 * Log lines that end nothing: a logger of the program's that throws loses its line, and neither the fiber nor the work that the line is about (ruling 86). `LogLine` is
 * the public module.
 */
import { Effect } from "effect"

/** Writes a line of messages. A `Cause` among them is logged as the cause. */
type Write = (...messages: ReadonlyArray<unknown>) => Effect.Effect<void>

const safely =
  (write: Write): Write =>
  (...messages) =>
    Effect.catchDefect(write(...messages), () => Effect.void)

/** Logs at level `Debug`. Never fails. */
export const debug: Write = safely(Effect.logDebug)

/** Logs at level `Info`. Never fails. */
export const info: Write = safely(Effect.logInfo)

/** Logs at level `Warn`. Never fails. */
export const warning: Write = safely(Effect.logWarning)

/** Logs at level `Error`. Never fails. */
export const error: Write = safely(Effect.logError)
