/**
 * Runs an effect of a user in a fiber of its own.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/**
 * One that cannot be interrupted holds up nobody who waits no longer. One that yields something that is no Effect, or that interrupts itself, fails with a defect: its fiber
 * ends, and not the caller's.
 */
export const run = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkDetach(effect), (fiber) =>
    Fiber.join(fiber).pipe(
      Effect.onInterrupt(() => Effect.sync(() => fiber.interruptUnsafe())),
      Effect.catchCauseIf(Cause.hasInterruptsOnly, () => Effect.die(new Error("It was interrupted by itself")))
    )
  )
