/**
 * The permits of a binding's circuit breaker: they are handed out to deliveries, and a delivery that got none waits here (connector seed §4.5, rulings 27, 28
 * and 59).
 */
import { Effect } from "effect"
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { StartGate } from "./startGate.ts"

/** The outcome of a call, for the breaker. `ignored`: the call says nothing about the dependency. `released`: the call came to no outcome. */
export type PermitOutcome = "success" | "failure" | "ignored" | "released"

export interface BreakerPermits {
  /** Undefined when there is none at once. */
  readonly tryAcquire: (nowMillis: number) => CircuitBreaker.Permit | undefined
  /** Takes a permit back. `durationMillis`: how long the delivery took. */
  readonly giveBack: (
    permit: CircuitBreaker.Permit,
    outcome: PermitOutcome,
    durationMillis: number,
    nowMillis: number
  ) => void
  /** False once the breaker has opened since the permit was handed out. */
  readonly isCurrent: (permit: CircuitBreaker.Permit) => boolean
  /** Called where `tryAcquire` has just found no permit. The effect returns when there may be one, or when the gate stops. */
  readonly waitForChange: (gate: StartGate) => Effect.Effect<void>
  /** Whether deliveries that have a slot may be waiting for the breaker instead of running their handlers. */
  readonly holdsUp: () => boolean
  /** Calls the listener when that begins. The result removes the listener. */
  readonly onHeldUp: (listener: () => void) => () => void
}

export const make = (breaker: CircuitBreaker.CircuitBreaker): BreakerPermits => {
  const waiting = new Set<() => void>()
  let wakes = 0
  const wake = () => {
    wakes++
    if (waiting.size === 0) return
    // A waiter that is called may wait again at once: the set changes while this runs.
    for (const call of Array.from(waiting)) call()
  }
  breaker.onChange(wake)

  const holdsUp = () => {
    const state = breaker.stateUnsafe()
    return state !== "CLOSED" && state !== "DISABLED"
  }

  /** `seen`: how often waiters had been woken when the caller found no permit. */
  const changeSince = (gate: StartGate, seen: number) =>
    Effect.callback<void>((resume) => {
      const done = () => {
        waiting.delete(done)
        unsubscribe()
        // Every listener hears of the change before the first call of the new state.
        resume(Effect.yieldNow)
      }
      const unsubscribe = gate.onStop(done)
      waiting.add(done)
      // The fiber may have yielded since it looked.
      if (seen !== wakes || gate.ending) done()
      return Effect.sync(() => {
        waiting.delete(done)
        unsubscribe()
      })
    })

  return {
    tryAcquire: breaker.tryAcquireUnsafe,
    giveBack: (permit, outcome, durationMillis, nowMillis) => {
      if (outcome === "released") breaker.releaseUnsafe(permit)
      else breaker.recordUnsafe(permit, outcome, durationMillis, nowMillis)
      // A permit that counted for nothing is free for the next delivery.
      if (outcome === "released" || outcome === "ignored") wake()
    },
    isCurrent: breaker.isCurrentUnsafe,
    waitForChange: (gate) => changeSince(gate, wakes),
    holdsUp,
    onHeldUp: (listener) => breaker.onChange(() => (holdsUp() ? listener() : undefined))
  }
}
