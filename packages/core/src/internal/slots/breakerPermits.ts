/**
 * The permits of a binding's circuit breaker: they are handed out to deliveries, and a delivery that got none waits here (connector seed §4.5, rulings 27, 28,
 * 59 and 72).
 */
import * as Effect from "effect/Effect"
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { ConsumerRecord, RecordPosition } from "../../ConsumerRecord.ts"
import type { Trials as TrialsSnapshot } from "../../Snapshot.ts"
import type { StartGate } from "./startGate.ts"
import { type TrialOptions, Trials } from "./trials.ts"

/** The outcome of a call, for the breaker. `ignored`: the call says nothing about the dependency. `released`: the call came to no outcome. */
export type PermitOutcome = "success" | "failure" | "ignored" | "released"

export interface BreakerPermits {
  /** Undefined when there is none for the record at once. While half-open nothing but a record that says who it is gets one. */
  readonly tryAcquire: (nowMillis: number, record: ConsumerRecord | undefined) => CircuitBreaker.Permit | undefined
  /** Whether a permit, just acquired, is one for a trial. */
  readonly isTrial: (permit: CircuitBreaker.Permit) => boolean
  /** Takes a permit back. `durationMillis`: how long the delivery took. `origin`: the record that the outcome counts for. */
  readonly giveBack: (
    permit: CircuitBreaker.Permit,
    outcome: PermitOutcome,
    durationMillis: number,
    nowMillis: number,
    origin: RecordPosition | undefined
  ) => void
  /** Takes the permit of a trial back. */
  readonly endTrial: (
    record: ConsumerRecord,
    permit: CircuitBreaker.Permit,
    outcome: PermitOutcome,
    durationMillis: number
  ) => void
  /** Whether a record whose trial has just failed stays where it is. Comes before its permit is given back. */
  readonly staysInPlace: (record: ConsumerRecord) => boolean
  /** Whether the outcome of a delivery would replace a failure of the same record. */
  readonly remembersFailures: () => boolean
  /** False once the breaker has opened since the permit was handed out. */
  readonly isCurrent: (permit: CircuitBreaker.Permit) => boolean
  /** Whether `tryAcquire` would find a permit for the record. */
  readonly admits: (record: ConsumerRecord | undefined) => boolean
  /** Called where the breaker does not admit the gate's record. The effect returns when it may, or when the gate stops. */
  readonly waitForChoice: (gate: StartGate) => Effect.Effect<void>
  /** Returns when the gate's record, whose trial has failed, may be tried again or handled, or when the gate stops. */
  readonly waitForNextWindow: (gate: StartGate, record: ConsumerRecord) => Effect.Effect<void>
  /** An operator has decided about a record: it is not tried again. */
  readonly forget: (record: ConsumerRecord) => void
  /** The record cannot be tried now: another one may. */
  readonly pass: (record: ConsumerRecord | undefined) => void
  /** Whether deliveries that have a slot may be waiting for the breaker instead of running their handlers. */
  readonly holdsUp: () => boolean
  /** Calls the listener when that begins. The result removes the listener. */
  readonly onHeldUp: (listener: () => void) => () => void
  readonly trials: () => TrialsSnapshot
}

export const make = (breaker: CircuitBreaker.CircuitBreaker, options: TrialOptions): BreakerPermits => {
  const trials = new Trials(breaker, options)
  breaker.onChange((change) => trials.onChange(change))

  const holdsUp = () => {
    const state = breaker.stateUnsafe()
    return state !== "CLOSED" && state !== "DISABLED"
  }

  const admits = (record: ConsumerRecord | undefined): boolean => {
    if (breaker.freePermitsUnsafe() <= 0) return false
    return breaker.stateUnsafe() !== "HALF_OPEN" || (record !== undefined && trials.mayTry(record))
  }

  const waitForChoice = (gate: StartGate) =>
    Effect.callback<void>((resume) => {
      const wake = () => {
        trials.leave(candidate)
        unsubscribe()
        // Every listener hears of a change before the first call of the new state.
        resume(Effect.yieldNow)
      }
      const candidate = { record: gate.current, wake }
      const unsubscribe = gate.onStop(() => {
        trials.remove(candidate)
        wake()
      })
      // The fiber may have yielded since it looked.
      if (gate.ending || admits(gate.current)) wake()
      else trials.add(candidate)
      return Effect.sync(() => {
        trials.remove(candidate)
        unsubscribe()
      })
    })

  const waitForNextWindow = (gate: StartGate, record: ConsumerRecord): Effect.Effect<void> =>
    Effect.suspend(() =>
      gate.ending || !trials.awaitsNextWindow(record)
        ? Effect.void
        : Effect.andThen(waitForChoice(gate), waitForNextWindow(gate, record))
    )

  return {
    tryAcquire: (nowMillis, record) => {
      if (breaker.stateUnsafe() !== "HALF_OPEN") return breaker.tryAcquireUnsafe(nowMillis)
      if (record === undefined || !trials.mayTry(record)) return undefined
      const permit = breaker.tryAcquireUnsafe(nowMillis)
      if (permit !== undefined) trials.begin(record)
      return permit
    },
    isTrial: (permit) => trials.isTrial(permit),
    giveBack: (permit, outcome, durationMillis, nowMillis, origin) => {
      if (outcome === "released") breaker.releaseUnsafe(permit)
      else breaker.recordUnsafe(permit, outcome, durationMillis, nowMillis, origin)
    },
    endTrial: (record, permit, outcome, durationMillis) => {
      trials.end(record, permit, outcome)
      if (outcome === "released") breaker.releaseUnsafe(permit)
      else breaker.recordUnsafe(permit, outcome, durationMillis, options.nowMillis())
      // A permit that counted for nothing is free for another record, and perhaps this was the last trial.
      trials.next()
    },
    staysInPlace: (record) => trials.staysInPlace(record),
    remembersFailures: breaker.remembersUnsafe,
    isCurrent: breaker.isCurrentUnsafe,
    admits,
    waitForChoice,
    waitForNextWindow,
    forget: (record) => trials.forget(record),
    pass: (record) => trials.pass(record),
    holdsUp,
    onHeldUp: (listener) => breaker.onChange(() => (holdsUp() ? listener() : undefined)),
    trials: () => trials.look()
  }
}
