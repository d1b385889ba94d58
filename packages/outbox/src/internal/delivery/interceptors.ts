/** Runs a delivery inside the interceptors (outbox seed §9). */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { EventInterceptor } from "../../EventInterceptor.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import { logText } from "../base/failureText.ts"
import { logError } from "../base/log.ts"

/** Calls one function of the user's around a delivery, within the limit of the delivery. `what` names it. */
export type Call = (what: string, call: () => Effect.Effect<unknown, unknown>) => Effect.Effect<unknown, unknown>

/**
 * `beforeDispatch` runs in registration order, and its failure fails the delivery. `afterDispatch` runs in reverse order, and its
 * failure is only logged.
 */
export const inInterceptors =
  (interceptors: ReadonlyArray<EventInterceptor>, call: Call) =>
  (event: EventEnvelope, delivery: Effect.Effect<unknown, unknown>): Effect.Effect<unknown, unknown> => {
    if (interceptors.length === 0) return delivery
    const before = Effect.forEach(interceptors, beforeEach(event, call), { discard: true })
    const after = (error: Cause.Cause<unknown> | undefined) =>
      Effect.forEach(
        interceptors.toReversed(),
        (i) =>
          i.afterDispatch === undefined
            ? Effect.void
            : call("afterDispatch", () => i.afterDispatch!(event, error)).pipe(
                Effect.catchCause((cause) =>
                  logError(`outbox: afterDispatch failed; the delivery is not affected: ${logText(cause)}`)
                )
              ),
        { discard: true }
      )
    return Effect.andThen(before, delivery).pipe(
      Effect.matchCauseEffect({
        onSuccess: () => after(undefined),
        onFailure: (cause) => Effect.andThen(after(cause), Effect.failCause(cause))
      })
    )
  }

const beforeEach =
  (event: EventEnvelope, call: Call) =>
  ({ beforeDispatch }: EventInterceptor): Effect.Effect<unknown, unknown> =>
    beforeDispatch === undefined ? Effect.void : call("beforeDispatch", () => beforeDispatch(event))
