/**
 * A tracer that looks at each step of a fiber. Effect ends a fiber at once, and without its finalizers, where it meets something that is no Effect, and it ends the
 * process where that has no text. A tracer is the only one who sees a step before that, so a wrapper of the program's tracer puts a defect in its place. Where a step brings
 * another tracer, as `Effect.provideService` does, that one is wrapped before the next step.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Tracer from "effect/Tracer"
import * as QuietSpans from "./quietSpans.ts"

/** Makes the defect for a value that is no step. */
type Refusal = (value: unknown) => unknown

/** The key of a step's function. */
const evaluate = "~effect/Effect/evaluate"

interface Checking {
  /** By the tracer that is wrapped, so that all fibers of a program share one. */
  readonly wrapped: WeakMap<Tracer.Tracer, Tracer.Tracer>
  /** The tracer that the program has given; undefined when it has given none. */
  readonly given: WeakMap<Tracer.Tracer, Tracer.Tracer | undefined>
}

const known: Checking = { wrapped: new WeakMap(), given: new WeakMap() }

/** The tracer that the program has given, without the wrapper; undefined when it has given none. */
export const programTracer = (context: Context.Context<never>): Tracer.Tracer | undefined => {
  const tracer = Context.getOrUndefined(context, Tracer.Tracer)
  return tracer !== undefined && known.given.has(tracer) ? known.given.get(tracer) : tracer
}

/** True in a context whose steps are looked at, whatever tracer it gets. */
const IsChecked = Context.Reference<boolean>("@eventbus/core/CheckedSteps", { defaultValue: () => false })

/** The context with its tracer in the wrapper. The same context where it is there already. */
export const inContext = <R>(context: Context.Context<R>, refusal: Refusal): Context.Context<R> =>
  known.given.has(Context.get(context, Tracer.Tracer))
    ? context
    : Context.add(Context.add(context, IsChecked, true), Tracer.Tracer, wrapperOf(context, refusal))

const wrapperOf = (context: Context.Context<never>, refusal: Refusal): Tracer.Tracer => {
  const tracer = Context.get(context, Tracer.Tracer)
  const before = known.wrapped.get(tracer)
  if (before !== undefined) return before
  const made = wrap(tracer, refusal)
  known.wrapped.set(tracer, made)
  known.given.set(made, Context.getOrUndefined(context, Tracer.Tracer))
  return made
}

/** No look at a good step but that it works, and which tracer it leaves: this runs for each step. */
const wrap = (tracer: Tracer.Tracer, refusal: Refusal): Tracer.Tracer => {
  const made: Tracer.Tracer = Tracer.make({
    span: (options) => QuietSpans.make(tracer, options),
    context: (primitive, fiber) => {
      try {
        const next = tracer.context === undefined ? primitive[evaluate](fiber) : tracer.context(primitive, fiber)
        if (fiber.cache.tracer !== made) stayChecked(fiber, refusal)
        return next
      } catch (error) {
        if (isStep(primitive)) throw error
        return dying(refusal, primitive)[evaluate](fiber)
      }
    }
  })
  return made
}

/** Wraps the tracer that a step has brought. A step that has left the checked context has the tracer of before. */
const stayChecked = (fiber: Fiber.Fiber<unknown, unknown>, refusal: Refusal): void => {
  if (Context.get(fiber.context, IsChecked)) fiber.setContext(inContext(fiber.context, refusal))
}

const isStep = (value: unknown): boolean => {
  try {
    return typeof (value as { readonly [evaluate]?: unknown } | null | undefined)?.[evaluate] === "function"
  } catch {
    // A Proxy whose traps throw.
    return false
  }
}

/** The step that dies in place of the value. */
function dying<A>(refusal: Refusal, value: A): A
function dying(refusal: Refusal, value: unknown): unknown {
  return Effect.die(refusal(value))
}
