/** The outcome of a failed delivery: postponed, retried, or dead (outbox seed §9). */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { EventRetryPolicy } from "../../EventRetryPolicy.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import { failureOf, logText, textProperty } from "../base/failureText.ts"
import type { Guard } from "../base/guard.ts"
import { logError, logWarning } from "../base/log.ts"
import { listenerKeyOf } from "./callListener.ts"

/** `Postpone`: no attempt is counted; with `holds: "listener"` the other events of the listener wait as well. */
export type FailureOutcome =
  | {
      readonly _tag: "Postpone"
      readonly holds: "listener" | "event"
      readonly destination: string | undefined
      readonly error: string
    }
  | { readonly _tag: "Retry"; readonly delayMillis: number; readonly error: string }
  | { readonly _tag: "Dead"; readonly error: string }

/** How failures are decided. */
export interface FailurePolicy {
  readonly maxAttempts: number
  readonly retryPolicy: EventRetryPolicy
}

/** Decides the outcome. `attempts` is the number of failed deliveries before this one, `maxAttempts` that of all deliveries. */
export const decideFailure = (
  cause: Cause.Cause<unknown>,
  attempts: number,
  policy: FailurePolicy,
  random: number,
  guard: Guard
): FailureOutcome => {
  const { summary: error, tag = "" } = failureOf(cause)
  if (tag === "DownstreamUnavailable") return postponed(cause, error)
  if (permanentErrors.has(tag) || attempts + 1 >= policy.maxAttempts) return { _tag: "Dead", error }
  const delay = guard.call(
    "retryPolicy",
    () => policy.retryPolicy(attempts + 1, random),
    Number.isFinite,
    fallbackDelayMillis
  )
  return { _tag: "Retry", delayMillis: Math.min(longestDelayMillis, Math.max(0, delay)), error }
}

/** The error is the user's: nothing of it is believed to be what its type says. */
const postponed = (cause: Cause.Cause<unknown>, error: string): FailureOutcome => {
  const failure = cause.reasons.find(Cause.isFailReason)?.error
  const destination = textProperty(failure, "destination")
  const holds = textProperty(failure, "holds") === "event" ? "event" : "listener"
  return { _tag: "Postpone", holds, destination, error }
}

/** Tags of errors that no retry can mend. */
const permanentErrors: ReadonlySet<string> = new Set(["UnroutableEvent", "PoisonEvent"])

/** The delay when a retry policy throws or returns no finite number. */
const fallbackDelayMillis = 60_000

/** Ten years: every database can add it to its present time. */
const longestDelayMillis = 315_360_000_000

/** Notes a failed delivery, and logs the first one of a listener at once and the others at most once a minute. */
export const reportFailure = (
  event: EventEnvelope,
  cause: Cause.Cause<unknown>,
  attempts: number,
  outcome: FailureOutcome,
  { maxAttempts }: FailurePolicy,
  guard: Guard,
  nowMillis: number
): Effect.Effect<void> => {
  const key = listenerKeyOf(event)
  const [source, name] =
    outcome._tag === "Postpone" ? (["destination", outcome.destination ?? key] as const) : (["listener", key] as const)
  const isDue = guard.monitor.report(source, name, outcome.error, nowMillis)
  const subject = `outbox: listener ${key}, event ${event.eventId}`
  switch (outcome._tag) {
    case "Dead":
      return logError(`${subject} is DEAD after ${attempts + 1} deliveries: ${logText(cause)}`)
    case "Postpone":
      return isDue ? logWarning(`${subject} waits, its destination ${name} is down: ${outcome.error}`) : Effect.void
    case "Retry": {
      const delivery = `delivery ${attempts + 1} of ${maxAttempts} failed`
      const next = `the next one is in ${Math.round(outcome.delayMillis)} ms`
      const times = guard.monitor.count("listener", key)
      return isDue
        ? logWarning(`${subject}: ${delivery}, ${next} (${times} failures in a row): ${logText(cause)}`)
        : Effect.void
    }
  }
}
