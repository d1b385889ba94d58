/**
 * A call under a circuit breaker's permit, which comes back on every exit (ruling 27).
 */
import { Cause, Effect, Exit } from "effect"

/** The side of a breaker that calls see. */
export interface Permits {
  readonly tryAcquireUnsafe: (nowMillis: number) => number | undefined
  readonly releaseUnsafe: (permit: number) => void
  readonly recordUnsafe: (
    permit: number,
    outcome: "success" | "failure" | "ignored",
    durationMillis: number,
    nowMillis: number
  ) => void
}

export const make =
  <Refusal>(permits: Permits, now: () => number, refusal: () => Refusal) =>
  <A, E, R>(
    call: Effect.Effect<A, E, R>,
    { isFailure = () => true }: { readonly isFailure?: (cause: Cause.Cause<E>) => boolean } = {}
  ): Effect.Effect<A, E | Refusal, R> =>
    // A fiber can be interrupted between any two steps: not between taking the permit and seeing to its return.
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
          record(holds(isFailure, exit.cause) ? "failure" : "ignored")
        })
      )
    })

/** A predicate that throws has not excused the call. */
const holds = <E>(isFailure: (cause: Cause.Cause<E>) => boolean, cause: Cause.Cause<E>): boolean => {
  try {
    return isFailure(cause)
  } catch {
    return true
  }
}
