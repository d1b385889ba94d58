/**
 * Runs a call under a circuit breaker's permit and gives the permit back on every exit (ruling 27).
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as UserFunction from "../../UserFunction.ts"
import type { Permits } from "./permits.ts"

export const make =
  <Refusal>(permits: Permits, now: () => number, refusal: () => Refusal) =>
  <A, E, R>(
    call: Effect.Effect<A, E, R>,
    { isFailure = () => true }: { readonly isFailure?: (cause: Cause.Cause<E>) => boolean } = {}
  ): Effect.Effect<A, E | Refusal, R> =>
    // Uninterruptible between taking the permit and installing its return: an interruption in between would lose the permit.
    Effect.uninterruptibleMask((restore): Effect.Effect<A, E | Refusal, R> => {
      const startedMillis = now()
      const permit = permits.tryAcquireUnsafe(startedMillis)
      if (permit === undefined) return Effect.fail(refusal())
      return Effect.onExit(restore(call), (exit) =>
        Effect.sync(() => {
          const endedMillis = now()
          const record = (outcome: "success" | "failure" | "ignored") =>
            permits.recordUnsafe(permit, outcome, endedMillis - startedMillis, endedMillis)
          if (Exit.isSuccess(exit)) return record("success")
          if (Cause.hasInterruptsOnly(exit.cause)) return permits.releaseUnsafe(permit)
          record(isCounted(isFailure, exit.cause) ? "failure" : "ignored")
        })
      )
    })

/** A predicate that throws, or returns a Promise, counts the call as a failure. */
const isCounted = <E>(isFailure: (cause: Cause.Cause<E>) => boolean, cause: Cause.Cause<E>): boolean => {
  try {
    return UserFunction.plain("isFailure", isFailure(cause), "true or false")
  } catch (error) {
    UserFunction.report("isFailure", error)
    return true
  }
}
