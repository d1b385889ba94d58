/**
 * Calls of async functions as effects. An interruption aborts the function's signal, and then waits for its promise.
 */
import { UserFunction } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/**
 * Settles as the promise of the function does: it fails with whatever the function throws or rejects with. A function that returns no promise has ended when it returns. The
 * interruption waits until the promise has settled; `bounded` puts a limit to that.
 */
export const fromPromise = (run: (signal: AbortSignal) => unknown): Effect.Effect<unknown, unknown> =>
  Effect.callback<unknown, unknown>((resume, signal) => {
    const settled = settle(run, signal)
    void settled.then(resume)
    // The signal is aborted already when this runs.
    return Effect.asVoid(Effect.promise(() => settled))
  })

/** `fromPromise` whose interruption waits `endMillis` at most. A promise that has not settled then goes on by itself, and an error line names it. */
export const bounded = (
  what: string,
  endMillis: number,
  run: (signal: AbortSignal) => unknown
): Effect.Effect<unknown, unknown> => UserFunction.runBounded(what, fromPromise(run), { endTimeout: endMillis })

/** Never rejects. Takes over a throw, a rejection, and the result of any other value with a `then`. */
const settle = (run: (signal: AbortSignal) => unknown, signal: AbortSignal): Promise<Exit.Exit<unknown, unknown>> =>
  new Promise((resolve) => resolve(run(signal))).then(withoutEffect).then(Exit.succeed, Exit.fail)

/** An Effect that a function answers with would never run. */
const withoutEffect = (answer: unknown): unknown => {
  if (!UserFunction.isEffect(answer)) return answer
  throw new TypeError(
    "The function answered with an Effect; a Promise is expected. Functions that return Effects belong to @eventbus/core."
  )
}
