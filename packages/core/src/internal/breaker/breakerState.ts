/**
 * The states of a circuit breaker and how they follow from each other: pure, without a clock of its own (rulings 26 and 27).
 */
import type { Counts } from "./callWindow.ts"

interface Common {
  /** Grows with every change of state: tells permits of different times apart. */
  readonly generation: number
  readonly sinceMillis: number
}

export type BreakerState =
  | (Common & { readonly _tag: "CLOSED" | "FORCED_OPEN" | "DISABLED" })
  | (Common & {
      readonly _tag: "OPEN"
      readonly untilMillis: number
      /** How often it has opened again without closing in between. */
      readonly reopenings: number
    })
  | (Common & {
      readonly _tag: "HALF_OPEN"
      readonly reopenings: number
      /** Permits that are out or have come to an outcome. */
      readonly permitsIssued: number
      readonly outcomes: Counts
    })

export type BreakerEvent =
  /** A call came to an outcome; `window` counts it already. */
  | { readonly _tag: "Outcome"; readonly failed: boolean; readonly slow: boolean; readonly window: Counts }
  /** A call asks for a permit, or gives it back without an outcome. */
  | { readonly _tag: "Acquired" | "Released" }
  /** The time of the open state is over, and the probe, if there is one, succeeded. */
  | { readonly _tag: "WaitOver" | "ProbeFailed" }
  | { readonly _tag: "ForceOpen" | "Disable" | "Close" }

export interface BreakerSettings {
  readonly minimumNumberOfCalls: number
  readonly failureRateThreshold: number
  readonly slowCallRateThreshold: number
  readonly permittedNumberOfCallsInHalfOpenState: number
  readonly waitMillis: number
  /** Factor of the wait from one reopening to the next; 1 keeps it. */
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
    // Also when it is closed: results of calls that run now are of the past.
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
    case "WaitOver":
      return state._tag === "OPEN"
        ? { _tag: "HALF_OPEN", ...next, reopenings: state.reopenings, permitsIssued: 0, outcomes: none }
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

/** Whether a call may begin. */
export const permits = (settings: BreakerSettings, state: BreakerState): boolean =>
  state._tag === "CLOSED" ||
  state._tag === "DISABLED" ||
  (state._tag === "HALF_OPEN" && state.permitsIssued < settings.permittedNumberOfCallsInHalfOpenState)

/** Whether these calls open a closed breaker: enough of them, whatever the last one came to, and too many failed or slow. */
export const opens = (settings: BreakerSettings, counts: Counts): boolean =>
  counts.calls >= settings.minimumNumberOfCalls && isTooHigh(settings, counts)

/** The half-open calls with one more outcome. */
export const withOutcome = (
  { calls, failures, slow }: Counts,
  outcome: { readonly failed: boolean; readonly slow: boolean }
): Counts => ({
  calls: calls + 1,
  failures: failures + (outcome.failed ? 1 : 0),
  slow: slow + (outcome.slow ? 1 : 0)
})

const none: Counts = { calls: 0, failures: 0, slow: 0 }

const afterOutcome = (
  settings: BreakerSettings,
  state: BreakerState,
  event: Extract<BreakerEvent, { readonly _tag: "Outcome" }>,
  nowMillis: number
): BreakerState => {
  if (state._tag === "CLOSED") return opens(settings, event.window) ? open(settings, state, 0, nowMillis) : state
  // No permit is out that this could be the outcome of.
  if (state._tag !== "HALF_OPEN" || state.outcomes.calls >= state.permitsIssued) return state
  const outcomes = withOutcome(state.outcomes, event)
  if (outcomes.calls < settings.permittedNumberOfCallsInHalfOpenState) return { ...state, outcomes }
  return isTooHigh(settings, outcomes)
    ? open(settings, state, state.reopenings + 1, nowMillis)
    : { _tag: "CLOSED", generation: state.generation + 1, sinceMillis: nowMillis }
}

const open = (settings: BreakerSettings, state: BreakerState, reopenings: number, nowMillis: number): BreakerState => ({
  _tag: "OPEN",
  generation: state.generation + 1,
  sinceMillis: nowMillis,
  untilMillis: nowMillis + waitMillis(settings, reopenings),
  reopenings
})

/** At the threshold is too high. */
const isTooHigh = (settings: BreakerSettings, { calls, failures, slow }: Counts): boolean =>
  failures * 100 >= settings.failureRateThreshold * calls || slow * 100 >= settings.slowCallRateThreshold * calls

const waitMillis = (settings: BreakerSettings, reopenings: number): number =>
  Math.max(
    settings.waitMillis,
    Math.min(settings.maxWaitMillis, settings.waitMillis * settings.waitMultiplier ** reopenings)
  )
