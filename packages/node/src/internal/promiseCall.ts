/**
 * Calls of async functions as effects. An interruption aborts the function's signal, and then waits for its promise.
 */
import { UserFunction } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** The second argument of a function. */
export interface CallContext {
  /** Aborted when the call is interrupted. Made when it is first read: most functions never do, and it costs as much as the rest of a call. */
  readonly signal: AbortSignal
}

/**
 * Settles as the promise of the function does: it fails with whatever the function throws or rejects with. A function that returns no promise has ended when it returns. The
 * interruption waits until the promise has settled; `bounded` puts a limit to that.
 */
export const fromPromise = (run: (context: CallContext) => unknown): Effect.Effect<unknown, unknown> =>
  interruptedBy(run, (settled) => Effect.promise(() => settled))

/**
 * `fromPromise` for calls of one function, whose interruption waits `endMillis` at most. A promise that has not settled then goes on by itself, and an error line names the
 * function as `what`.
 */
export const bounded = (
  what: string,
  endMillis: number
): ((run: (context: CallContext) => unknown) => Effect.Effect<unknown, unknown>) => {
  const onInterrupt = (settled: Promise<void>) => {
    // Only a call that is interrupted costs a fiber of its own. It resists its interruption as long as the promise does.
    const resisting = Effect.uninterruptible(Effect.promise(() => settled))
    return Effect.ignore(UserFunction.runBounded(what, resisting, { timeout: 0, endTimeout: endMillis }))
  }
  return (run) => interruptedBy(run, onInterrupt)
}

/** `onInterrupt` is given a promise that fulfils when that of the function has settled. */
const interruptedBy = (
  run: (context: CallContext) => unknown,
  onInterrupt: (settled: Promise<void>) => Effect.Effect<void>
): Effect.Effect<unknown, unknown> =>
  Effect.callback<unknown, unknown>((resume) => {
    const call = new Call()
    const fail = (error: unknown) => resume(Exit.fail(error))
    const end = (answer: unknown) =>
      resume(UserFunction.isEffect(answer) ? Exit.fail(answeredWithEffect()) : Exit.succeed(answer))
    try {
      const answer = run(call)
      const isPlain = isPlainPromise(answer)
      if (!isPlain && !isThenable(answer)) return end(answer)
      const settled = (isPlain ? answer : Promise.resolve(answer)).then(end, fail)
      return Effect.suspend(() => {
        call.abort()
        return onInterrupt(settled)
      })
    } catch (error) {
      return fail(error)
    }
  })

/** A class, since an object literal with a getter costs as much as the rest of a call. */
class Call implements CallContext {
  #controller: AbortController | undefined
  #isAborted = false

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#isAborted) this.#controller.abort()
    }
    return this.#controller.signal
  }

  abort(): void {
    this.#isAborted = true
    this.#controller?.abort()
  }
}

/** A promise of an async function. `Promise.resolve` would answer it as it is; without that, and without the looks of `isThenable`, a call takes half the time. */
const isPlainPromise = (value: unknown): value is Promise<unknown> =>
  value instanceof Promise && value.constructor === Promise

/** A Promise, and any other value with a `then`. */
const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  (typeof value === "object" || typeof value === "function") &&
  value !== null &&
  !UserFunction.isEffect(value) &&
  typeof Reflect.get(value, "then") === "function"

/** An Effect that a function answers with would never run. */
const answeredWithEffect = (): TypeError =>
  new TypeError(
    "The function answered with an Effect; a Promise is expected. Functions that return Effects belong to @eventbus/core."
  )
