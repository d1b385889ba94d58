/**
 * The outbox's part in the guard of user functions (ruling 86): what `UserFunction` of core finds is noted in the monitor, which health shows. None of it ends a fiber
 * of the outbox, and none of it stays unseen.
 */
import { UserFunction } from "@eventbus/core"
import type * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { failureOf, failureOfValue } from "./failureText.ts"
import { logError } from "./log.ts"
import type { Monitor } from "./monitor.ts"

/** Calls plain user functions, notes their failures, and logs each at once and then at most once a minute. */
export class Guard {
  readonly monitor: Monitor
  readonly #clock: Clock.Clock
  readonly #context: Context.Context<never>

  constructor(monitor: Monitor, clock: Clock.Clock, context: Context.Context<never>) {
    this.monitor = monitor
    this.#clock = clock
    this.#context = context
  }

  /** Calls a function. When it throws, or its result is not valid, the failure is noted and the fallback is returned. */
  call<A>(what: string, call: () => A, isValid: (result: unknown) => boolean, fallback: A): A {
    try {
      const result = call()
      if (isValid(result)) return result
      this.attend(what, result)
      this.#failed(what, `${what} returned ${UserFunction.kindOf(result)}, which is not allowed`)
    } catch (error) {
      this.threw(what, error)
    }
    return fallback
  }

  /** Calls a function without a result, which may be an async one. */
  run(what: string, call: (() => void) | undefined): void {
    try {
      this.attend(what, call?.())
    } catch (error) {
      this.threw(what, error)
    }
  }

  /** Notes the failure of a user's effect, which the caller logs. */
  note(what: string, cause: Cause.Cause<unknown>): void {
    this.monitor.report("function", what, failureOf(cause).summary, this.#clock.currentTimeMillisUnsafe())
  }

  /** Notes the rejection of a Promise that a user function returned, when it comes. */
  attend(what: string, returned: unknown): void {
    if (returned !== undefined) UserFunction.attend(returned, (error) => this.threw(what, error))
  }

  /** Notes that a user function threw. */
  threw(what: string, error: unknown): void {
    this.#failed(what, failureOfValue(error).summary)
  }

  #failed(what: string, error: string): void {
    if (!this.monitor.report("function", what, error, this.#clock.currentTimeMillisUnsafe())) return
    const times = this.monitor.count("function", what)
    Effect.runForkWith(this.#context)(logError(`outbox: ${what} failed (${times} times so far): ${error}`))
  }
}
