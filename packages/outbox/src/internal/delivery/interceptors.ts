/** Runs a delivery inside the interceptors (outbox seed §9). */
import { UserFunction } from "@eventbus/core"
import { type Cause, Effect } from "effect"
import type { EventInterceptor } from "../../EventInterceptor.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import { logText } from "../base/failureText.ts"

/**
 * `beforeDispatch` runs in registration order, and its failure fails the delivery. `afterDispatch` runs in reverse order, and its
 * failure is only logged.
 */
export const inInterceptors =
  (interceptors: ReadonlyArray<EventInterceptor>) =>
  (event: EventEnvelope, delivery: Effect.Effect<unknown, unknown>): Effect.Effect<unknown, unknown> => {
    if (interceptors.length === 0) return delivery
    const before = Effect.forEach(interceptors, beforeEach(event), { discard: true })
    const after = (error: Cause.Cause<unknown> | undefined) =>
      Effect.forEach(
        interceptors.toReversed(),
        (i) =>
          i.afterDispatch === undefined
            ? Effect.void
            : UserFunction.callEffect("afterDispatch", () => i.afterDispatch!(event, error)).pipe(
                Effect.catchCause((cause) =>
                  Effect.logError(`outbox: afterDispatch failed; the delivery is not affected: ${logText(cause)}`)
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
  (event: EventEnvelope) =>
  ({ beforeDispatch }: EventInterceptor): Effect.Effect<void, unknown> =>
    beforeDispatch === undefined ? Effect.void : UserFunction.callEffect("beforeDispatch", () => beforeDispatch(event))
