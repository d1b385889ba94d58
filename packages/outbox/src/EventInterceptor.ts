/** Interceptors: cross-cutting work around every delivery, such as audit, logging and metrics (outbox seed §9). */
import type * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import type { EventEnvelope } from "./EventEnvelope.ts"

/** Work around every delivery. Both hooks are optional. Each runs for at most `listenerTimeout`, where one is set. */
export interface EventInterceptor {
  /** Runs before the listener, in registration order. Its failure skips the listener and counts as the delivery's failure. */
  readonly beforeDispatch?: (event: EventEnvelope) => Effect.Effect<void, unknown>
  /** Runs after the delivery, in reverse order. `error` is undefined after a success. Its own failure is only logged. */
  readonly afterDispatch?: (
    event: EventEnvelope,
    error: Cause.Cause<unknown> | undefined
  ) => Effect.Effect<void, unknown>
}

/** An interceptor with a `beforeDispatch` hook only. */
export const before = (hook: NonNullable<EventInterceptor["beforeDispatch"]>): EventInterceptor => ({
  beforeDispatch: hook
})

/** An interceptor with an `afterDispatch` hook only. */
export const after = (hook: NonNullable<EventInterceptor["afterDispatch"]>): EventInterceptor => ({
  afterDispatch: hook
})
