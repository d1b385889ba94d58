/**
 * Issues the permits of a circuit breaker, and applies the outcomes with which they come back. It runs for every call.
 */
import type { RecordPosition } from "../../ConsumerRecord.ts"
import * as BreakerState from "./breakerState.ts"
import type { CallWindow } from "./callWindow.ts"

/** The part of a breaker that issues permits and takes them back. */
export interface Permits {
  readonly tryAcquireUnsafe: (nowMillis: number) => number | undefined
  readonly releaseUnsafe: (permit: number) => void
  readonly recordUnsafe: (
    permit: number,
    outcome: "success" | "failure" | "ignored",
    durationMillis: number,
    nowMillis: number,
    record?: RecordPosition
  ) => void
  readonly freePermitsUnsafe: () => number
  readonly judgeUnsafe: (nowMillis: number) => void
  readonly remembersUnsafe: () => boolean
}

export const make = (
  settings: BreakerState.BreakerSettings,
  slowMillis: number,
  window: CallWindow,
  current: () => BreakerState.BreakerState,
  apply: (event: BreakerState.BreakerEvent, nowMillis: number) => void
): Permits => {
  const releaseUnsafe = (permit: number) => {
    const state = current()
    if (permit === state.generation && state._tag === "HALF_OPEN") apply({ _tag: "Released" }, state.sinceMillis)
  }
  return {
    releaseUnsafe,
    freePermitsUnsafe: () => BreakerState.freePermits(settings, current()),
    judgeUnsafe: (nowMillis) => apply({ _tag: "TrialsOver" }, nowMillis),
    remembersUnsafe: window.remembers,
    tryAcquireUnsafe: (nowMillis) => {
      const state = current()
      if (state._tag === "CLOSED") return state.generation
      if (BreakerState.freePermits(settings, state) <= 0) return undefined
      apply({ _tag: "Acquired" }, nowMillis)
      return current().generation
    },
    recordUnsafe: (permit, outcome, durationMillis, nowMillis, record) => {
      const state = current()
      if (permit !== state.generation || state._tag === "DISABLED") return
      if (outcome === "ignored") return releaseUnsafe(permit)
      const failed = outcome === "failure"
      const slow = durationMillis > slowMillis
      if (state._tag === "CLOSED") {
        window.add(failed, slow, nowMillis, record)
        // Nothing is allocated for a call that changes nothing.
        if (!BreakerState.opens(settings, window.counts(nowMillis))) return
      }
      apply({ _tag: "Outcome", failed, slow, window: window.counts(nowMillis) }, nowMillis)
    }
  }
}
