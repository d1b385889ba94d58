/**
 * The state machine of a circuit breaker: pure, without a clock of its own (rulings 26 and 27).
 */
import type { Counts } from "./callWindow.ts"

interface Common {
  /** Grows with every change of state. A permit carries the generation that issued it, so that an outcome from an earlier state does not count. */
  readonly generation: number
  readonly sinceMillis: number
}

export type BreakerState =
  | (Common & { readonly _tag: "CLOSED" | "FORCED_OPEN" | "DISABLED" })
  | (Common & {
      readonly _tag: "OPEN"
      readonly untilMillis: number
      /** How often the breaker has opened again without closing in between. */
      readonly reopenings: number
    })
  | (Common & {
      readonly _tag: "HALF_OPEN"
      readonly reopenings: number
      /** Permits that are in use or have come to an outcome. */
      readonly permitsIssued: number
      readonly outcomes: Counts
    })

export type BreakerEvent =
  /** A call ended. `window` already counts it. */
  | { readonly _tag: "Outcome"; readonly failed: boolean; readonly slow: boolean; readonly window: Counts }
  /** A call took a permit, or gave it back without an outcome. */
  | { readonly _tag: "Acquired" | "Released" }
  /** No call is left to try: a half-open breaker judges the outcomes that it has. */
  | { readonly _tag: "TrialsOver" }
  /** The wait of the open state is over. With a probe: the probe succeeded, or it failed. */
  | { readonly _tag: "WaitOver" | "ProbeFailed" }
  | { readonly _tag: "ForceOpen" | "Disable" | "Close" }

export interface BreakerSettings {
  readonly minimumNumberOfCalls: number
  readonly failureRateThreshold: number
  readonly slowCallRateThreshold: number
  readonly permittedNumberOfCallsInHalfOpenState: number
  readonly waitMillis: number
  /** Each reopening multiplies the wait by this; 1 keeps the wait the same. */
  readonly waitMultiplier: number
  readonly maxWaitMillis: number
}

export const initial = (nowMillis: number): BreakerState => ({ _tag: "CLOSED", generation: 0, sinceMillis: nowMillis })

/** The state after an event; the same object when nothing changes. */
export const transition = (
  settings: BreakerSettings,
  state: BreakerState,
  event: BreakerEvent,
  nowMillis: number
): BreakerState => {
  const next = { generation: state.generation + 1, sinceMillis: nowMillis }
  switch (event._tag) {
    case "ForceOpen":
      return state._tag === "FORCED_OPEN" ? state : { _tag: "FORCED_OPEN", ...next }
    case "Disable":
      return state._tag === "DISABLED" ? state : { _tag: "DISABLED", ...next }
    // Also from CLOSED: the new generation makes the outcomes of running calls count no more.
    case "Close":
      return { _tag: "CLOSED", ...next }
    case "Outcome":
      return afterOutcome(settings, state, event, nowMillis)
    case "Acquired":
      return state._tag === "HALF_OPEN" ? { ...state, permitsIssued: state.permitsIssued + 1 } : state
    case "Released":
      return state._tag === "HALF_OPEN"
        ? { ...state, permitsIssued: Math.max(state.outcomes.calls, state.permitsIssued - 1) }
        : state
    case "TrialsOver":
      return state._tag === "HALF_OPEN" && state.outcomes.calls > 0 && state.permitsIssued === state.outcomes.calls
        ? verdict(settings, state, state.outcomes, nowMillis)
        : state
    case "WaitOver":
      return state._tag === "OPEN"
        ? { _tag: "HALF_OPEN", ...next, reopenings: state.reopenings, permitsIssued: 0, outcomes: noCalls }
        : state
    case "ProbeFailed":
      return state._tag === "OPEN"
        ? {
            ...state,
            untilMillis: nowMillis + waitMillis(settings, state.reopenings + 1),
            reopenings: state.reopenings + 1
          }
        : state
  }
}

/** How many calls may begin now. */
export const freePermits = (settings: BreakerSettings, state: BreakerState): number => {
  if (state._tag === "HALF_OPEN") return settings.permittedNumberOfCallsInHalfOpenState - state.permitsIssued
  return state._tag === "CLOSED" || state._tag === "DISABLED" ? Number.POSITIVE_INFINITY : 0
}

/** Whether these calls open a closed breaker: there are enough of them, and too many of them failed or were slow. The last outcome does not matter. */
export const opens = (settings: BreakerSettings, counts: Counts): boolean =>
  counts.calls >= settings.minimumNumberOfCalls && isTooHigh(settings, counts)

/** The counts with one more outcome. */
export const withOutcome = (
  { calls, failures, slow }: Counts,
  outcome: { readonly failed: boolean; readonly slow: boolean }
): Counts => ({
  calls: calls + 1,
  failures: failures + (outcome.failed ? 1 : 0),
  slow: slow + (outcome.slow ? 1 : 0)
})

const noCalls: Counts = { calls: 0, failures: 0, slow: 0 }

const afterOutcome = (
  settings: BreakerSettings,
  state: BreakerState,
  event: Extract<BreakerEvent, { readonly _tag: "Outcome" }>,
  nowMillis: number
): BreakerState => {
  if (state._tag === "CLOSED") return opens(settings, event.window) ? open(settings, state, 0, nowMillis) : state
  // An outcome without a permit in use belongs to an earlier state.
  if (state._tag !== "HALF_OPEN" || state.outcomes.calls >= state.permitsIssued) return state
  const outcomes = withOutcome(state.outcomes, event)
  if (outcomes.calls < settings.permittedNumberOfCallsInHalfOpenState) return { ...state, outcomes }
  return verdict(settings, state, outcomes, nowMillis)
}

/** The end of a half-open state. */
const verdict = (
  settings: BreakerSettings,
  state: Extract<BreakerState, { readonly _tag: "HALF_OPEN" }>,
  outcomes: Counts,
  nowMillis: number
): BreakerState =>
  isTooHigh(settings, outcomes)
    ? open(settings, state, state.reopenings + 1, nowMillis)
    : { _tag: "CLOSED", generation: state.generation + 1, sinceMillis: nowMillis }

const open = (settings: BreakerSettings, state: BreakerState, reopenings: number, nowMillis: number): BreakerState => ({
  _tag: "OPEN",
  generation: state.generation + 1,
  sinceMillis: nowMillis,
  untilMillis: nowMillis + waitMillis(settings, reopenings),
  reopenings
})

/** A rate that reaches the threshold is too high. */
const isTooHigh = (settings: BreakerSettings, { calls, failures, slow }: Counts): boolean =>
  failures * 100 >= settings.failureRateThreshold * calls || slow * 100 >= settings.slowCallRateThreshold * calls

const waitMillis = (settings: BreakerSettings, reopenings: number): number =>
  Math.max(
    settings.waitMillis,
    Math.min(settings.maxWaitMillis, settings.waitMillis * settings.waitMultiplier ** reopenings)
  )
