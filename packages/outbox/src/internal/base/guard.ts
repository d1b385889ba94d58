/**
 * The guard of user functions (ruling 86). A user function may throw, return something else than its type says, or fail with an error
 * whose getters throw. None of that ends a fiber of the outbox, and none of it stays unseen.
 */
import { type Cause, type Clock, type Context, Effect, Fiber } from "effect"
import { failureOf, failureOfValue } from "./failureText.ts"
import type { Monitor } from "./monitor.ts"

/** A user function returned no Effect. */
class NotAnEffect extends Error {
  override readonly name = "NotAnEffect"
}

const isEffect = (value: unknown): value is Effect.Effect<unknown, unknown> => {
  try {
    return Effect.isEffect(value)
  } catch {
    // A Proxy whose traps throw.
    return false
  }
}

const kindOf = (value: unknown): string => {
  if (value === null) return "null"
  if (typeof value !== "object" && typeof value !== "function") return typeof value
  try {
    return typeof (value as { readonly then?: unknown }).then === "function" ? "a Promise" : `a plain ${typeof value}`
  } catch {
    return `a plain ${typeof value}`
  }
}

/** Calls a user function that must return an Effect. A throw, or any other result, is a defect of the call. */
export const callEffect = <A, E, R>(what: string, call: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const result: unknown = call()
    return isEffect(result)
      ? (result as Effect.Effect<A, E, R>)
      : Effect.die(new NotAnEffect(`${what} returned ${kindOf(result)} instead of an Effect`))
  })

/**
 * Runs a user's effect in a fiber of its own. An effect that yields something else than an Effect in its course ends its fiber without
 * finalizers; so this one goes on, and the call has died.
 */
export const isolate = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkChild(effect, { startImmediately: true }), (fiber) =>
    Effect.onInterrupt(Fiber.join(fiber), () => Fiber.interrupt(fiber))
  )

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
      this.#failed(what, `${what} returned ${kindOf(result)}, which is not allowed`)
    } catch (error) {
      this.threw(what, error)
    }
    return fallback
  }

  /** Calls a function without a result. */
  run(what: string, call: (() => void) | undefined): void {
    try {
      call?.()
    } catch (error) {
      this.threw(what, error)
    }
  }

  /** Notes the failure of a user's effect, which the caller logs. */
  note(what: string, cause: Cause.Cause<unknown>): void {
    this.monitor.report("function", what, failureOf(cause).summary, this.#clock.currentTimeMillisUnsafe())
  }

  /** Notes that a user function threw. */
  threw(what: string, error: unknown): void {
    this.#failed(what, failureOfValue(error).summary)
  }

  #failed(what: string, error: string): void {
    if (!this.monitor.report("function", what, error, this.#clock.currentTimeMillisUnsafe())) return
    const times = this.monitor.count("function", what)
    Effect.runForkWith(this.#context)(Effect.logError(`outbox: ${what} failed (${times} times so far): ${error}`))
  }
}
