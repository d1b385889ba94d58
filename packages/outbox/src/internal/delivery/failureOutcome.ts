/** The outcome of a failed delivery: postponed, retried, or dead (outbox seed §9). */
import { Cause, Option } from "effect"
import type { EventRetryPolicy } from "../../EventRetryPolicy.ts"

/** `Postpone`: nothing is marked, and no attempt is counted. */
export type FailureOutcome =
  | { readonly _tag: "Postpone"; readonly delayMillis: number; readonly error: string }
  | { readonly _tag: "Retry"; readonly delayMillis: number; readonly error: string }
  | { readonly _tag: "Dead"; readonly error: string }

/** Decides the outcome. `attempts` is the number of failed deliveries before this one, `maxAttempts` that of all deliveries. */
export const decideFailure = (
  cause: Cause.Cause<unknown>,
  attempts: number,
  policy: { readonly maxAttempts: number; readonly retryPolicy: EventRetryPolicy },
  random: number
): FailureOutcome => {
  const error = errorText(cause)
  const tag = tagOf(cause)
  if (tag === "DownstreamUnavailable") return { _tag: "Postpone", delayMillis: unavailableDelayMillis, error }
  if (permanentErrors.has(tag) || attempts + 1 >= policy.maxAttempts) return { _tag: "Dead", error }
  const delay = policy.retryPolicy(attempts + 1, random)
  // A user's policy that returns no usable number must not leave the event undelivered.
  return { _tag: "Retry", delayMillis: Number.isFinite(delay) ? Math.max(0, delay) : fallbackDelayMillis, error }
}

/** Tags of errors that no retry can mend. */
const permanentErrors: ReadonlySet<string> = new Set(["UnroutableEvent", "PoisonEvent"])

/** The wait between two deliveries while the destination is down. The destination's client has waited for its own timeout before. */
const unavailableDelayMillis = 1000

/** The delay when a retry policy returns no finite number. */
const fallbackDelayMillis = 60_000

const tagOf = (cause: Cause.Cause<unknown>): string => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : ""
}

const errorText = (cause: Cause.Cause<unknown>): string => {
  const squashed = Cause.squash(cause)
  if (squashed instanceof Error) return `${squashed.name}: ${squashed.message}`
  try {
    return typeof squashed === "string" ? squashed : (JSON.stringify(squashed) ?? String(squashed))
  } catch {
    return Cause.pretty(cause)
  }
}
