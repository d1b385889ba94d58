/** Interceptors that are async functions. */
import type { Interceptor } from "@eventbus/core"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { PromiseInterceptor } from "../ConsumerOptions.ts"
import * as PromiseCall from "./promiseCall.ts"

/** The interceptor for core. It fails as the handler does, whatever becomes of the rejection of `next`. Its own throw is a defect. */
export const make = (what: string, endMillis: number, around: PromiseInterceptor): Interceptor.Interceptor => {
  const bounded = PromiseCall.bounded(what, endMillis)
  return <A, E, R>(handle: Effect.Effect<A, E, R>, call: Interceptor.Call) =>
    Effect.contextWith((context: Context.Context<R>) => {
      let handled: Exit.Exit<A, E> | undefined
      let isCalled = false
      const next = (signal: AbortSignal) => async () => {
        if (isCalled) throw new TypeError("an interceptor calls next once")
        isCalled = true
        handled = await Effect.runPromiseExitWith(context)(handle, { signal })
        if (Exit.isFailure(handled)) throw Cause.squash(handled.cause)
      }
      const whole = bounded(({ signal }) => around(call, next(signal)))
      return Effect.flatMap(Effect.exit(whole), (exit): Effect.Effect<A, E> => {
        if (handled !== undefined && Exit.isFailure(handled)) return Effect.failCause(handled.cause)
        if (Exit.isFailure(exit)) return Effect.die(Cause.squash(exit.cause))
        return (
          handled ?? Effect.die(new TypeError("an interceptor ended without a call of next, or before next had ended"))
        )
      })
    })
}
