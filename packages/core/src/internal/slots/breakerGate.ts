/**
 * A binding's circuit breaker, where records meet it: an attempt runs under the permit of its delivery, and what the delivery came to is told to the breaker
 * once (connector seed §4.5, rulings 27, 28 and 59).
 */
import { type Clock, Effect, Exit } from "effect"
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import { type Gate, type Held, type Inside, nothingHeld, type Places, type Timer } from "./concurrencySlots.ts"

export interface BreakerGate extends Inside {
  /** Takes a permit, if there is one at once, for a delivery that starts now, and callers that tell `succeeded` or `failed`, and `release` when they are interrupted. */
  readonly admit: (timer: Timer) => boolean
  /** The delivery succeeded. Does nothing for one whose success is told already. */
  readonly succeeded: (timer: Timer) => void
  /** Runs an attempt when the breaker lets it; waits in front of it otherwise, which uses up no processing budget. Interrupts itself when the gate stops first. */
  readonly within: <A, E, R>(
    gate: Gate,
    timer: Timer,
    run: () => Effect.Effect<A, E, R>,
    /** What is left, too, while the partition is paused. */
    outer?: Held
  ) => Effect.Effect<A, E, R>
  /** The delivery failed for good. True when the breaker is open now: the record stays where it is. */
  readonly failed: (timer: Timer, permanent: boolean) => boolean
  /** Whether the breaker has opened since the delivery began: it makes no further attempt. */
  readonly hasOpened: (timer: Timer) => boolean
  /** Gives the permit of a delivery back that came to nothing. Does nothing for one that has none any more. */
  readonly release: (timer: Timer) => void
}

export const make = (breaker: CircuitBreaker.CircuitBreaker, clock: Clock.Clock): BreakerGate => {
  const waiting = new Set<() => void>()
  let wakes = 0
  const wake = () => {
    wakes++
    if (waiting.size === 0) return
    for (const call of Array.from(waiting)) call()
  }
  breaker.onChange(wake)

  const release = (timer: Timer) => {
    if (timer.permit === undefined) return
    breaker.releaseUnsafe(timer.permit)
    timer.permit = undefined
    wake()
  }

  const record = (timer: Timer, permit: CircuitBreaker.Permit, outcome: "success" | "failure" | "ignored") => {
    const now = clock.currentTimeMillisUnsafe()
    timer.permit = undefined
    breaker.recordUnsafe(permit, outcome, Math.max(0, now - timer.startedMillis), now)
    // An outcome that does not count leaves its permit to the next.
    if (outcome === "ignored") wake()
  }

  const holdsUp = () => {
    const state = breaker.stateUnsafe()
    return state !== "CLOSED" && state !== "DISABLED"
  }

  const hasOpened = ({ permit }: Timer) => permit !== undefined && !breaker.isCurrentUnsafe(permit)

  /** Returns when a permit may be free, or the gate stops. `seen` is how often that was so when there was none. */
  const change = (gate: Gate, seen: number) =>
    Effect.callback<void>((resume) => {
      const done = () => {
        waiting.delete(done)
        unsubscribe()
        // Everybody else is told of the change before the first call of the new state.
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

  const enter = (gate: Gate, timer: Timer, outer: Held): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (gate.stopping) return Effect.interrupt
      if (!gate.open) {
        outer.leave()
        const again = Effect.andThen(outer.enter(timer), enter(gate, timer, outer))
        return Effect.andThen(gate.runnable, again)
      }
      timer.permit = breaker.tryAcquireUnsafe(clock.currentTimeMillisUnsafe())
      if (timer.permit !== undefined) return Effect.void
      return gate.ending ? Effect.interrupt : Effect.andThen(change(gate, wakes), enter(gate, timer, outer))
    })

  const attempt = <A, E, R>(gate: Gate, timer: Timer, run: () => Effect.Effect<A, E, R>) =>
    Effect.onExit(Effect.suspend(run), (exit) =>
      Effect.sync(() => {
        if (timer.permit === undefined) return
        if (Exit.isSuccess(exit)) record(timer, timer.permit, "success")
        // A failed attempt is not the end of its delivery yet, and one that the processing budget has cut off is a failed one (ruling 18).
        else if (Exit.hasInterrupts(exit) && (!timer.cutOff || gate.stopping)) release(timer)
      })
    )

  return {
    admit: (timer) => {
      timer.permit = breaker.tryAcquireUnsafe(timer.startedMillis)
      return timer.permit !== undefined
    },
    succeeded: (timer) => {
      if (timer.permit !== undefined) record(timer, timer.permit, "success")
    },
    within: (gate, timer, run, outer = nothingHeld) =>
      Effect.suspend(() => {
        // It may have opened while a later attempt of the delivery waited for its turn.
        if (hasOpened(timer)) timer.permit = undefined
        timer.permit ??= breaker.tryAcquireUnsafe(clock.currentTimeMillisUnsafe())
        if (timer.permit !== undefined) return attempt(gate, timer, run)
        if (!gate.patient) return Effect.interrupt
        const { startedMillis } = timer
        const sinceMillis = clock.currentTimeMillisUnsafe()
        timer.startedMillis = Number.POSITIVE_INFINITY
        return Effect.flatMap(enter(gate, timer, outer), () => {
          timer.startedMillis = startedMillis + clock.currentTimeMillisUnsafe() - sinceMillis
          return attempt(gate, timer, run)
        })
      }),
    failed: (timer, permanent) => {
      const permit = timer.permit ?? breaker.tryAcquireUnsafe(clock.currentTimeMillisUnsafe())
      if (permit === undefined) return true
      record(timer, permit, permanent ? "ignored" : "failure")
      return !breaker.isCurrentUnsafe(permit)
    },
    hasOpened,
    release,
    holdsUp,
    onHeldUp: (listener) => breaker.onChange(() => (holdsUp() ? listener() : undefined))
  }
}

/** The breaker's permits as places. Each is of one delivery: none is kept for the next. */
export const permits = (gate: BreakerGate): Places => ({
  within: gate.within,
  turn: (at, outer) => ({
    ...nothingHeld,
    takes: gate.admit,
    within: (timer, run) => gate.within(at, timer, run, outer)
  })
})
