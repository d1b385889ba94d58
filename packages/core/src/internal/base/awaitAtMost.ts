/**
 * Waiting with a bound where the waiting fiber itself cannot be interrupted, or is being interrupted: in finalizers and drains.
 */
import { type Duration, Effect, Fiber, Option } from "effect"

/** Runs the effect in a fiber of its own; None when it did not end in time. It is told to stop then, but what resists interruption is not waited for. */
export const awaitAtMost = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  bound: Duration.Input
): Effect.Effect<Option.Option<A>, E, R> =>
  Effect.gen(function* () {
    const running = yield* Effect.forkDetach(Effect.interruptible(effect), { startImmediately: true })
    const waiting = yield* Effect.forkDetach(Effect.interruptible(Effect.timeoutOption(Fiber.await(running), bound)), {
      startImmediately: true
    })
    const ended = yield* Effect.onInterrupt(Fiber.join(waiting), () => Effect.sync(() => running.interruptUnsafe()))
    if (Option.isSome(ended)) return Option.some(yield* ended.value)
    running.interruptUnsafe()
    return Option.none()
  })
