/**
 * A wait with an upper bound that works in finalizers and drains, where the waiting fiber cannot be interrupted or is being interrupted already.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"

/**
 * Runs the effect in a fiber of its own and waits for it, at most for `limit`. Answers None when it did not end in time: the effect is interrupted then, but
 * nothing waits for an effect that resists interruption.
 */
export const awaitAtMost = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  limit: Duration.Input
): Effect.Effect<Option.Option<A>, E, R> =>
  Effect.gen(function* () {
    const running = yield* Effect.forkDetach(Effect.interruptible(effect), { startImmediately: true })
    const waiting = yield* Effect.forkDetach(Effect.interruptible(Effect.timeoutOption(Fiber.await(running), limit)), {
      startImmediately: true
    })
    const ended = yield* Effect.onInterrupt(Fiber.join(waiting), () => Effect.sync(() => running.interruptUnsafe()))
    if (Option.isSome(ended)) return Option.some(yield* ended.value)
    running.interruptUnsafe()
    return Option.none()
  })
