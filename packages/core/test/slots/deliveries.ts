/** Deliveries as the schedulers use them: one for each record, or one for record after record. */
import { Effect } from "effect"
import type { ConcurrencyLimits } from "../../src/internal/slots/concurrencyLimits.ts"
import { DeliveryContext } from "../../src/internal/slots/deliveryContext.ts"
import type { StartGate } from "../../src/internal/slots/startGate.ts"

type Run<A, E, R> = () => Effect.Effect<A, E, R>

/** Runs one handler, which gives its slots back at its end. */
export const once = <A, E, R>(limits: ConcurrencyLimits, gate: StartGate, run: Run<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const delivery = new DeliveryContext(limits, 0)
    return Effect.onExit(delivery.admit(gate, run), (exit) => Effect.sync(() => delivery.callEnded(exit)))
  })

/** Handles one record after the other, and keeps the slots in between. */
export const keeping = (limits: ConcurrencyLimits, gate: StartGate) => {
  const delivery = new DeliveryContext(limits, 0)
  /** Whether a handler that starts at this time has its slots without waiting. */
  const takes = (nowMillis: number): boolean => {
    delivery.begin(nowMillis)
    return delivery.tryAdmit(gate)
  }
  return {
    ...{ delivery, takes },
    waits: <A, E, R>(nowMillis: number, run: Run<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.suspend(() => {
        delivery.begin(nowMillis)
        return delivery.admit(gate, run)
      }),
    handles: <A, E, R>(nowMillis: number, run: Run<A, E, R>): Effect.Effect<A, E, R> =>
      takes(nowMillis) ? run() : delivery.admit(gate, run),
    release: () => delivery.releaseSlots()
  }
}
