/**
 * One run of an effect for all that ask for it while it runs. Who comes afterwards starts it anew. It runs in the given scope, so that nobody's interruption
 * takes it from the others.
 */
import { Effect, Fiber, type Scope } from "effect"

export const make = <A, E>(effect: Effect.Effect<A, E>, scope: Scope.Scope): Effect.Effect<A, E> => {
  let running: Fiber.Fiber<A, E> | undefined
  return Effect.suspend(() => {
    if (running !== undefined) return Fiber.join(running)
    return Effect.flatMap(Effect.forkIn(effect, scope, { startImmediately: true }), (fiber) => {
      if (fiber.pollUnsafe() === undefined) {
        running = fiber
        fiber.addObserver(() => {
          running = undefined
        })
      }
      return Fiber.join(fiber)
    })
  })
}
