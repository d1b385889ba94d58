/**
 * A circuit breaker at one moment: its state with the figures of its window.
 */
import * as BreakerState from "./breakerState.ts"
import type { Counts } from "./callWindow.ts"

/** The state of a breaker and the figures that it judges by. */
export interface Snapshot {
  /** The state. */
  readonly state: BreakerState.BreakerState["_tag"]
  /** Grows with every change of state. */
  readonly generation: number
  /** Calls in the window, or half-open calls that have ended. */
  readonly calls: number
  /** Failed ones among `calls`. */
  readonly failures: number
  /** Slow ones among `calls`. */
  readonly slowCalls: number
  /** Percent of failed calls; 0 without calls. */
  readonly failureRate: number
  /** Percent of slow calls; 0 without calls. */
  readonly slowCallRate: number
  /** When this state began, epoch milliseconds. */
  readonly sinceMillis: number
  /** When the breaker looks at the dependency again, epoch milliseconds. Set while it is `OPEN`. */
  readonly nextProbeAtMillis: number | undefined
}

/** A change from one state to another. */
export interface Change {
  /** The state before. */
  readonly from: BreakerState.BreakerState["_tag"]
  /** The state after. */
  readonly to: BreakerState.BreakerState["_tag"]
  /** The new state, with the counts of the old one: those that led to the change. */
  readonly snapshot: Snapshot
}

export interface WindowCounts {
  readonly counts: (nowMillis: number) => Counts
}

export const countsOf = (state: BreakerState.BreakerState, window: WindowCounts, nowMillis: number): Counts =>
  state._tag === "HALF_OPEN" ? state.outcomes : window.counts(nowMillis)

/** The counts that led to an event. Those of the half-open calls do not hold yet the call that the event is about. */
export const countsBehind = (
  from: BreakerState.BreakerState,
  event: BreakerState.BreakerEvent,
  window: WindowCounts,
  nowMillis: number
): Counts =>
  from._tag === "HALF_OPEN" && event._tag === "Outcome"
    ? BreakerState.withOutcome(from.outcomes, event)
    : countsOf(from, window, nowMillis)

export const snapshotOf = (state: BreakerState.BreakerState, { calls, failures, slow }: Counts): Snapshot => ({
  state: state._tag,
  generation: state.generation,
  calls,
  failures,
  slowCalls: slow,
  failureRate: rate(failures, calls),
  slowCallRate: rate(slow, calls),
  sinceMillis: state.sinceMillis,
  nextProbeAtMillis: state._tag === "OPEN" ? state.untilMillis : undefined
})

const rate = (part: number, calls: number): number => (calls === 0 ? 0 : (part * 100) / calls)
