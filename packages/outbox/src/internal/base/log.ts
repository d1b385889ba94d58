/**
 * The log of the outbox. A logger of the user's may throw, as one does whose disk is full: its line is lost then, and nothing else. No fiber ends, no event stays, and
 * health shows the function `logger` (ruling 86).
 */
import { type Cause, Clock, Context, Effect } from "effect"
import { failureOf } from "./failureText.ts"
import type { Monitor } from "./monitor.ts"

/** The monitor of the outbox that the running fiber belongs to, if it belongs to one. */
export const CurrentMonitor = Context.Reference<Monitor | undefined>("@eventbus/outbox/CurrentMonitor", {
  defaultValue: () => undefined
})

const note = (cause: Cause.Cause<never>): Effect.Effect<void> =>
  Effect.flatMap(CurrentMonitor, (monitor) =>
    Effect.map(Clock.currentTimeMillis, (nowMillis) => {
      monitor?.report("function", "logger", failureOf(cause).summary, nowMillis)
    })
  )

const safely =
  (log: (line: string) => Effect.Effect<void>) =>
  (line: string): Effect.Effect<void> =>
    Effect.catchCause(log(line), note)

export const logDebug = safely(Effect.logDebug)
export const logInfo = safely(Effect.logInfo)
export const logWarning = safely(Effect.logWarning)
export const logError = safely(Effect.logError)
export const logFatal = safely(Effect.logFatal)
