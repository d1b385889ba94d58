/**
 * Runs user code in fibers that the processing budget can cut off.
 */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { DeliveryContext } from "../slots/deliveryContext.ts"

/** A handler's run that the processing budget may cut off. */
export interface GuardedRun {
  readonly delivery: DeliveryContext
  readonly cutOff: () => void
}

/**
 * Runs user code in a fiber of its own, which stands in the set of runs meanwhile. A fiber that yields a value that is no Effect ends without its finalizers: the observer
 * of its end gives slots and permit back.
 */
export const guard = <A, E, R>(
  runs: Set<GuardedRun>,
  onGuarded: () => void,
  effect: Effect.Effect<A, E, R>,
  delivery: DeliveryContext
): Effect.Effect<Exit.Exit<A, E>, never, R> => {
  const run = Effect.suspend(() => {
    delivery.runBegins()
    return effect
  })
  return Effect.flatMap(Effect.forkChild(run, { startImmediately: true }), (fiber) => {
    fiber.addObserver((exit) => delivery.runEnded(exit))
    const done = fiber.pollUnsafe()
    if (done !== undefined) return Effect.succeed(done)
    const guarded: GuardedRun = {
      delivery,
      cutOff: () => {
        delivery.runIsCutOff()
        fiber.interruptUnsafe()
      }
    }
    runs.add(guarded)
    onGuarded()
    return Fiber.await(fiber).pipe(
      // The interrupt does not wait for the run: a finalizer of this fiber may itself wait for it, as a producer does for records that are being sent.
      Effect.onInterrupt(() => Effect.sync(() => fiber.interruptUnsafe())),
      Effect.ensuring(Effect.sync(() => runs.delete(guarded)))
    )
  })
}
