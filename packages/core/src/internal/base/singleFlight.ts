/**
 * Shares one run of an effect among all callers that ask for it while it runs. A later caller starts a new run. The run belongs to the given scope, so
 * interrupting one caller does not interrupt the others.
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
