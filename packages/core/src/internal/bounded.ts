/**
 * Waiting with a bound where the waiting fiber itself cannot be interrupted, or is being interrupted: in finalizers and drains.
 */
import { type Duration, Effect, Fiber, type Option } from "effect"

/** Runs the effect in a fiber of its own; None when it did not end in time, and then it was interrupted. */
export const bounded = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  bound: Duration.Input
): Effect.Effect<Option.Option<A>, E, R> =>
  Effect.flatMap(
    Effect.forkDetach(Effect.interruptible(Effect.timeoutOption(effect, bound)), { startImmediately: true }),
    Fiber.join
  )
