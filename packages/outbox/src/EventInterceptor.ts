/**
 * Cross-cutting work around every delivery: audit, logging, metrics. `beforeDispatch` runs in registration order and its failure
 * counts as the delivery's failure; `afterDispatch` runs in reverse order and its failure is only logged.
 */
import { type Cause, Effect } from "effect"
import type { EventEnvelope } from "./EventEnvelope.ts"

export interface EventInterceptor {
  readonly beforeDispatch?: (event: EventEnvelope) => Effect.Effect<void, unknown>
  /** `error` is undefined after a success. */
  readonly afterDispatch?: (
    event: EventEnvelope,
    error: Cause.Cause<unknown> | undefined
  ) => Effect.Effect<void, unknown>
}

export const before = (hook: NonNullable<EventInterceptor["beforeDispatch"]>): EventInterceptor => ({
  beforeDispatch: hook
})

export const after = (hook: NonNullable<EventInterceptor["afterDispatch"]>): EventInterceptor => ({
  afterDispatch: hook
})

/** Runs a delivery inside of the interceptors. */
export const around =
  (interceptors: ReadonlyArray<EventInterceptor>) =>
  (event: EventEnvelope, delivery: Effect.Effect<unknown, unknown>): Effect.Effect<unknown, unknown> => {
    if (interceptors.length === 0) return delivery
    const befores = Effect.forEach(interceptors, (i) => i.beforeDispatch?.(event) ?? Effect.void, { discard: true })
    const afters = (error: Cause.Cause<unknown> | undefined) =>
      Effect.forEach(
        interceptors.toReversed(),
        (i) =>
          Effect.suspend(() => i.afterDispatch?.(event, error) ?? Effect.void).pipe(
            Effect.catchCause((cause) =>
              Effect.logError("outbox: afterDispatch failed; the delivery is not affected", cause)
            )
          ),
        { discard: true }
      )
    return Effect.andThen(befores, delivery).pipe(
      Effect.matchCauseEffect({
        onSuccess: () => afters(undefined),
        onFailure: (cause) => Effect.andThen(afters(cause), Effect.failCause(cause))
      })
    )
  }
