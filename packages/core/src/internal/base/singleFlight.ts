/**
 * Shares one run of an effect among all callers that ask for it while it runs. A later caller starts a new run. The run belongs to the given scope, so
 * interrupting one caller does not interrupt the others.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"

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

/** The same for a question that is asked about many keys: callers that ask about one key at the same time share one run. */
export const perKey = <A, E>(
  ask: (key: string) => Effect.Effect<A, E>,
  scope: Scope.Scope
): ((key: string) => Effect.Effect<A, E>) => {
  const shared = new Map<string, Effect.Effect<A, E>>()
  return (key) => {
    const run = shared.get(key) ?? make(ask(key), scope)
    shared.set(key, run)
    return run
  }
}
