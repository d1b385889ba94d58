/**
 * The log of the outbox. A logger of the user's may throw, as one does whose disk is full, or be an async one that is rejected: its line is lost then, and nothing else. No
 * fiber ends, no event stays, and health shows the function `logger` (ruling 86).
 */
import { LogLine } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { failureOfValue } from "./failureText.ts"
import type { Monitor } from "./monitor.ts"

/** The monitor of the outbox that the running fiber belongs to, if it belongs to one. */
export const CurrentMonitor = Context.Reference<Monitor | undefined>("@eventbus/outbox/CurrentMonitor", {
  defaultValue: () => undefined
})

const safely =
  (log: (line: string) => Effect.Effect<void>) =>
  (line: string): Effect.Effect<void> =>
    Effect.flatMap(Effect.all([CurrentMonitor, Clock.Clock]), ([monitor, clock]) => {
      const onLost = (error: unknown) => {
        monitor?.report("function", "logger", failureOfValue(error).summary, clock.currentTimeMillisUnsafe())
      }
      return Effect.catchDefect(LogLine.guarded(log(line), onLost), (defect) => Effect.sync(() => onLost(defect)))
    })

export const logDebug = safely(Effect.logDebug)
export const logInfo = safely(Effect.logInfo)
export const logWarning = safely(Effect.logWarning)
export const logError = safely(Effect.logError)
export const logFatal = safely(Effect.logFatal)
