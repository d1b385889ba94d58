/**
 * A binding's circuit breaker, where records meet it: an attempt runs under the permit of its delivery, and what the delivery came to is told to the breaker
 * once (connector seed §4.5, rulings 27, 28 and 59).
 */
import { type Clock, Effect, Exit } from "effect"
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import {
  type ConcurrencySlots,
  type DeliveryContext,
  type HeldSlots,
  type Inside,
  noSlots,
  type StartGate
} from "./concurrencySlots.ts"

export interface BreakerGate extends Inside {
  /** Takes a permit, if there is one at once, for a delivery that starts now, and callers that tell `succeeded` or `failed`, and `release` when they are interrupted. */
  readonly admit: (delivery: DeliveryContext) => boolean
  /** The delivery succeeded. Does nothing for one whose success is told already. */
  readonly succeeded: (delivery: DeliveryContext) => void
  /** Runs an attempt when the breaker lets it; waits in front of it otherwise, which uses up no processing budget. Interrupts itself when the gate stops first. */
  readonly within: <A, E, R>(
    gate: StartGate,
    delivery: DeliveryContext,
    run: () => Effect.Effect<A, E, R>,
    /** What is left, too, while the partition is paused. */
    outer?: HeldSlots
  ) => Effect.Effect<A, E, R>
  /** The delivery failed for good. True when the breaker is open now: the record stays where it is. */
  readonly failed: (delivery: DeliveryContext, permanent: boolean) => boolean
  /** Whether the breaker has opened since the delivery began: it makes no further attempt. */
  readonly hasOpened: (delivery: DeliveryContext) => boolean
  /** Gives the permit of a delivery back that came to nothing. Does nothing for one that has none any more. */
  readonly release: (delivery: DeliveryContext) => void
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

  const release = (delivery: DeliveryContext) => {
    if (delivery.permit === undefined) return
    breaker.releaseUnsafe(delivery.permit)
    delivery.permit = undefined
    wake()
  }

  const record = (
    delivery: DeliveryContext,
    permit: CircuitBreaker.Permit,
    outcome: "success" | "failure" | "ignored"
  ) => {
    const now = clock.currentTimeMillisUnsafe()
    delivery.permit = undefined
    breaker.recordUnsafe(permit, outcome, Math.max(0, now - delivery.startedMillis), now)
    // An outcome that does not count leaves its permit to the next.
    if (outcome === "ignored") wake()
  }

  const holdsUp = () => {
    const state = breaker.stateUnsafe()
    return state !== "CLOSED" && state !== "DISABLED"
  }

  const hasOpened = ({ permit }: DeliveryContext) => permit !== undefined && !breaker.isCurrentUnsafe(permit)

  /** Returns when a permit may be free, or the gate stops. `seen` is how often that was so when there was none. */
  const change = (gate: StartGate, seen: number) =>
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

  const enter = (gate: StartGate, delivery: DeliveryContext, outer: HeldSlots): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (gate.stopping) return Effect.interrupt
      if (!gate.open) {
        outer.release()
        const again = Effect.andThen(outer.reacquire(delivery), enter(gate, delivery, outer))
        return Effect.andThen(gate.runnable, again)
      }
      delivery.permit = breaker.tryAcquireUnsafe(clock.currentTimeMillisUnsafe())
      if (delivery.permit !== undefined) return Effect.void
      return gate.ending ? Effect.interrupt : Effect.andThen(change(gate, wakes), enter(gate, delivery, outer))
    })

  const attempt = <A, E, R>(gate: StartGate, delivery: DeliveryContext, run: () => Effect.Effect<A, E, R>) =>
    Effect.onExit(Effect.suspend(run), (exit) =>
      Effect.sync(() => {
        if (delivery.permit === undefined) return
        if (Exit.isSuccess(exit)) record(delivery, delivery.permit, "success")
        // A failed attempt is not the end of its delivery yet, and one that the processing budget has cut off is a failed one (ruling 18).
        else if (Exit.hasInterrupts(exit) && (!delivery.cutOff || gate.stopping)) release(delivery)
      })
    )

  return {
    admit: (delivery) => {
      delivery.permit = breaker.tryAcquireUnsafe(delivery.startedMillis)
      return delivery.permit !== undefined
    },
    succeeded: (delivery) => {
      if (delivery.permit !== undefined) record(delivery, delivery.permit, "success")
    },
    within: (gate, delivery, run, outer = noSlots) =>
      Effect.suspend(() => {
        // It may have opened while a later attempt of the delivery waited for its turn.
        if (hasOpened(delivery)) delivery.permit = undefined
        delivery.permit ??= breaker.tryAcquireUnsafe(clock.currentTimeMillisUnsafe())
        if (delivery.permit !== undefined) return attempt(gate, delivery, run)
        if (!gate.mayWait) return Effect.interrupt
        const { startedMillis } = delivery
        const sinceMillis = clock.currentTimeMillisUnsafe()
        delivery.startedMillis = Number.POSITIVE_INFINITY
        return Effect.flatMap(enter(gate, delivery, outer), () => {
          delivery.startedMillis = startedMillis + clock.currentTimeMillisUnsafe() - sinceMillis
          return attempt(gate, delivery, run)
        })
      }),
    failed: (delivery, permanent) => {
      const permit = delivery.permit ?? breaker.tryAcquireUnsafe(clock.currentTimeMillisUnsafe())
      if (permit === undefined) return true
      record(delivery, permit, permanent ? "ignored" : "failure")
      return !breaker.isCurrentUnsafe(permit)
    },
    hasOpened,
    release,
    holdsUp,
    onHeldUp: (listener) => breaker.onChange(() => (holdsUp() ? listener() : undefined))
  }
}

/** The breaker's permits as places. Each is of one delivery: none is kept for the next. */
export const permitsAsSlots = (gate: BreakerGate): ConcurrencySlots => ({
  within: gate.within,
  lease: (at, outer) => ({
    ...noSlots,
    tryAcquire: gate.admit,
    within: (delivery, run) => gate.within(at, delivery, run, outer)
  })
})
