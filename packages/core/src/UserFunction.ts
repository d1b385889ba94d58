/**
 * The guard of functions that a user gives (ruling 86). Such a function may throw, return something else than its type says, return a Promise that is rejected later,
 * or answer with an effect that goes on with something that is none. All packages call them through this module, so that none of that ends the process or a fiber.
 *
 * ```ts
 * import { UserFunction } from "@eventbus/core"
 * import { Effect } from "effect"
 *
 * declare const notify: (order: string) => void
 * declare const charge: (order: string) => Effect.Effect<void>
 *
 * export const handled = (order: string) =>
 *   Effect.andThen(
 *     UserFunction.callIsolated("charge", () => charge(order)),
 *     Effect.sync(() => UserFunction.attend(notify(order), (error) => UserFunction.report("notify", error)))
 *   )
 * ```
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { attend, isNative, isObject, thenOf } from "./internal/base/attend.ts"
import * as CheckedSteps from "./internal/failure/checkedSteps.ts"
import * as Failures from "./internal/failure/failure.ts"
import { failureText } from "./internal/failure/failureText.ts"
import * as FunctionLog from "./internal/failure/functionLog.ts"

export { attend } from "./internal/base/attend.ts"

/** A user's function returned, or its effect went on with, something that is no Effect. */
export class NotAnEffect extends Error {
  override readonly name = "NotAnEffect"
}

/** A user's function returned a Promise where its caller needs the value at once. */
export class ReturnedPromise extends Error {
  override readonly name = "ReturnedPromise"
}

/** An effect of a user's did not end within its timeout, and was interrupted. */
export class FunctionTimedOut extends Schema.TaggedError<FunctionTimedOut>()("FunctionTimedOut", {
  /** The function's name, as `runBounded` was given it. */
  what: Schema.String,
  /** The timeout in milliseconds. */
  millis: Schema.Number
}) {
  /** The next call may be faster. */
  readonly retryable = true
  override get message(): string {
    return `${this.what} did not end within ${Duration.format(Duration.millis(this.millis))} and was interrupted`
  }
}

/** The bounds of `runBounded`. */
export interface Bounds {
  /** The longest time of the effect. Default: no limit, except that an interruption ends it. */
  readonly timeout?: Duration.Input | undefined
  /** The longest wait for the end of an interrupted effect, its finalizers included. Default 1 second. */
  readonly endTimeout?: Duration.Input
}

/** Whether a value is an Effect. Asking never throws, whatever the value is. */
export const isEffect = (value: unknown): value is Effect.Effect<unknown, unknown, never> => {
  try {
    return Effect.isEffect(value)
  } catch {
    // A Proxy whose traps throw.
    return false
  }
}

/** The kind of a value, for a message: `a Promise`, `null`, `undefined`, `a plain object`. Never throws. */
export const kindOf = (value: unknown): string => {
  if (value === null) return "null"
  if (!isObject(value)) return typeof value
  return isNative(value) || thenOf(value) !== undefined ? "a Promise" : `a plain ${typeof value}`
}

/**
 * Logs the failure of a user's function as an error, with the loggers and annotations of the running fiber: at once, and then at most once a minute. `what` names the
 * function. Never throws.
 */
export const report = (what: string, error: unknown): void =>
  FunctionLog.log(contextNow(), what, `${what} failed: ${textOf(error)}`)

/**
 * Answers a plain value that a user's function returned. Throws `ReturnedPromise` for a Promise, whose rejection is logged when it comes.
 *
 * `expected` says what the caller needs, such as `a topic name`.
 */
export const plain = <A>(what: string, value: A, expected = "a plain value"): A => {
  // Looked at first: only a Promise costs an allocation.
  if (isObject(value) && (isNative(value) || thenOf(value) !== undefined)) {
    attend(value, rejectionOf(what))
    throw new ReturnedPromise(`${what} returned a Promise; ${expected} is expected`)
  }
  return value
}

/**
 * Answers the value that a user's effect succeeded with, or a function without a result returned. It may be a Promise, which nobody waits for: an async function is a
 * function without a result, too. Its rejection is logged.
 */
export const settled = <A>(what: string, value: A): A => {
  if (isObject(value) && (isNative(value) || thenOf(value) !== undefined)) attend(value, rejectionOf(what))
  return value
}

/** Answers the effect that a user's function returned. Any other value is a defect; the rejection of a Promise is logged when it comes. */
export const checked = <A, E, R>(what: string, returned: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  isEffect(returned) ? returned : Effect.die(refusal(`${what} returned`, what, returned))

/**
 * Calls a user's function that returns an Effect. A throw, and any other result, is a defect of the effect, and so is everything that the effect goes on with and that is
 * no Effect. By itself, Effect would end the fiber there at once, without its finalizers. A Promise that the effect succeeds with is `settled`.
 */
export const callEffect = <A, E, R>(what: string, call: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => Effect.map(checkSteps(checked(what, call())), (value) => settled(what, value)))

/**
 * Makes everything that an effect goes on with, and that is no Effect, a defect in its place, whoever gave the effect. Costs a call per step, so that it may stand around
 * the loop that calls a function of a user's for each record.
 */
export const checkSteps = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.updateContext(effect, (context: Context.Context<R>) => CheckedSteps.inContext(context, noStep))

/**
 * `callEffect` in a fiber of its own, so that an effect that ends its fiber ends nothing else. An interruption ends that fiber, too, and waits for it however long it takes: as
 * for a function that uses a connection of its caller's.
 */
export const callIsolated = <A, E, R>(what: string, call: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkChild(callEffect(what, call), { startImmediately: true }), (fiber) =>
    Effect.onInterrupt(Fiber.join(fiber), () => Fiber.interrupt(fiber))
  )

/**
 * Runs an effect in a fiber of its own, which holds its caller no longer than its bounds allow. After the timeout the fiber is interrupted, and the call fails with
 * `FunctionTimedOut`. An interruption of the caller interrupts the fiber, too. A fiber that resists its interruption is left behind after `endTimeout`: it goes on by
 * itself, nobody waits for it, and an error line says so. `what` names the effect.
 */
export const runBounded = <A, E, R>(
  what: string,
  effect: Effect.Effect<A, E, R>,
  bounds: Bounds = {}
): Effect.Effect<A, E | FunctionTimedOut, R> => {
  const { timeout, endTimeout = "1 second" } = bounds
  return Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDetach(effect, { startImmediately: true }), (fiber) => {
      const ended = fiber.pollUnsafe()
      if (ended !== undefined) return ended
      const waiting = restore(timeout === undefined ? Fiber.await(fiber) : exitWithin(fiber, timeout))
      return Effect.flatMap(
        Effect.onInterrupt(waiting, () => leave(what, fiber, endTimeout)),
        (exit): Effect.Effect<A, E | FunctionTimedOut> =>
          exit ?? Effect.andThen(leave(what, fiber, endTimeout), timedOut(what, timeout ?? 0))
      )
    })
  )
}

const timedOut = (what: string, timeout: Duration.Input): Effect.Effect<never, FunctionTimedOut> =>
  Effect.suspend(() => Effect.fail(new FunctionTimedOut({ what, millis: Duration.toMillis(timeout) })))

const leave = (what: string, fiber: Fiber.Fiber<unknown, unknown>, endTimeout: Duration.Input): Effect.Effect<void> =>
  Effect.suspend(() => {
    fiber.interruptUnsafe()
    return Effect.map(exitWithin(fiber, endTimeout), (exit) => {
      if (exit !== undefined) return
      const line = `${what} resists its interruption: nobody waits for it any longer, and it goes on by itself`
      FunctionLog.log(contextNow(), `${what}, left behind`, line)
    })
  })

/** The exit of a fiber, or undefined when it has not ended in time. One timer and no race: it may be called for each event. */
const exitWithin = <A, E>(
  fiber: Fiber.Fiber<A, E>,
  limit: Duration.Input
): Effect.Effect<Exit.Exit<A, E> | undefined> =>
  Effect.suspend(() => {
    const ended = fiber.pollUnsafe()
    if (ended !== undefined) return Effect.succeed(ended)
    const context = contextNow()
    return Effect.callback<Exit.Exit<A, E> | undefined>((resume) => {
      const timer = Effect.runForkWith(context)(Effect.sleep(limit))
      const forgetTimer = timer.addObserver(() => resume(Effect.succeed(undefined)))
      const stopTimer = () => {
        forgetTimer()
        timer.interruptUnsafe()
      }
      const forgetFiber = fiber.addObserver((exit) => {
        stopTimer()
        resume(Effect.succeed(exit))
      })
      return Effect.sync(() => {
        forgetFiber()
        stopTimer()
      })
    })
  })

const noStep = (value: unknown): NotAnEffect => refusal("an effect went on with", "an effect", value)

const refusal = (how: string, what: string, value: unknown): NotAnEffect => {
  attend(value, rejectionOf(what))
  return new NotAnEffect(`${how} ${kindOf(value)}; an Effect is expected`)
}

const rejectionOf = (what: string) => {
  // The fiber that called the function: it has ended when the rejection comes.
  const context = contextNow()
  return (error: unknown) =>
    FunctionLog.log(context, `${what}, later`, `${what} returned a Promise, which was rejected: ${textOf(error)}`)
}

const contextNow = (): Context.Context<never> => Fiber.getCurrent()?.context ?? Context.empty()

const textOf = (error: unknown): string => failureText(Failures.fromUnknown(error))
