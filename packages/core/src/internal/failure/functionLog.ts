/**
 * Log lines about functions of users that fail. A function may be called for every record: each one is logged at once, and then at most once a minute, with the number of
 * its failures so far.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as LogLine from "../base/logLine.ts"

interface Failing {
  count: number
  loggedMillis: number
}

/** The pause between two lines about one function. */
const pauseMillis = 60_000

/** Most functions that are remembered; the oldest is forgotten for another one. */
const most = 1_000

/** By the clock that tells the time, so that programs and tests with clocks of their own do not silence each other. */
const failing = new WeakMap<Clock.Clock, Map<string, Failing>>()

/** Logs a failure with the loggers and annotations of the context. Never throws. */
export const log = (context: Context.Context<never>, what: string, line: string): void => {
  const clock = Context.get(context, Clock.Clock)
  const nowMillis = clock.currentTimeMillisUnsafe()
  const times = failing.get(clock) ?? new Map<string, Failing>()
  failing.set(clock, times)
  const key = `${String(Context.get(context, References.CurrentLogAnnotations)["bindingName"])} ${what}`
  const known = times.get(key)
  if (known !== undefined) {
    known.count++
    if (nowMillis - known.loggedMillis < pauseMillis) return
    known.loggedMillis = nowMillis
  } else {
    for (const oldest of times.size >= most ? Array.from(times.keys()).slice(0, 1) : []) times.delete(oldest)
    times.set(key, { count: 1, loggedMillis: nowMillis })
  }
  const so = known === undefined ? "" : ` (${known.count} times so far)`
  Effect.runForkWith(context)(LogLine.error(`${line}${so}`))
}
