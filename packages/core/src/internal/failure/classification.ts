/**
 * Decides the route of a record from the cause of its failed delivery. Total: it decides for every thrown value, also when a user's rule throws.
 *
 * The first rule that answers wins (ruling 58): the result of the handler, `onError` by the error's tag, the classifier function, the exception lists
 * (with the name of an authentication error). Otherwise the record is attempted again in place, then goes to the next tier. Every rule ends in a `Route`, and `decide`
 * alone turns routes into decisions.
 */
import * as Cause from "effect/Cause"
import * as Predicate from "effect/Predicate"
import type { OnError } from "../../BindingOptions.ts"
import type { ExceptionClassifier, ExceptionLists } from "../../Classifier.ts"
import type { Failure } from "../../Failure.ts"
import * as Route from "../../Route.ts"
import * as UserFunction from "../../UserFunction.ts"
import * as Lists from "./exceptionLists.ts"
import { fromCause } from "./failure.ts"
import * as Results from "./results.ts"

/** Where a record goes when it is not attempted again in place. */
export type Destination =
  | Exclude<Route.Route, { readonly _tag: "Retry" | "DeadLetter" }>
  | {
      readonly _tag: "DeadLetter"
      readonly reason: string | undefined
      /** Set when the handler itself decided so (ruling 60), and no rule about its error. */
      readonly isDecision?: true
    }

export interface Decision {
  /** Whether the remaining attempts in place come first. */
  readonly inPlace: boolean
  /** Where the record goes after the attempts in place, or at once when `inPlace` is false. */
  readonly destination: Destination
  /**
   * Whether the failure is about the record, not about a dependency. The breaker does not count such a failure (ruling 29). It covers dead-lettering, skipping and
   * pausing: a counted pause could open the breaker, which then holds the record, and the operator would never be asked.
   */
  readonly permanent: boolean
}

/** The rules of a binding for its errors. */
export interface Rules<in E> {
  readonly onError?: OnError<E>
  readonly classifier?: ExceptionClassifier
  readonly exceptions?: ExceptionLists
}

/** Decides about a cause in a tier (0 is the main topic). Pass `failure` when the caller has already read it from the cause. */
export type Classify = (cause: Cause.Cause<unknown>, tier: number, failure?: Failure) => Decision

/** Makes the classifier of one binding. It reads the rules once. */
export const make = <E>(rules: Rules<E>): Classify => {
  const byType = typed(rules.onError)
  const byLists = Lists.compile(rules.exceptions ?? {})
  return (cause, tier, known) => {
    try {
      const failure = known ?? fromCause(cause)
      if (failure === undefined) return byDefault
      const result = Results.routeOf(failure.error)
      if (result !== undefined) return ofResult(decide(result), failure)
      return decide(
        (cause.reasons.some(Cause.isFailReason) ? byType(failure) : undefined) ??
          byClassifier(rules.classifier, failure, tier) ??
          byLists(failure)
      )
    } catch (error) {
      UserFunction.report("a rule for errors", error)
      // The handler's failure is still the one that is reported, and the record keeps its attempts.
      return byDefault
    }
  }
}

const byDefault: Decision = { inPlace: true, destination: { _tag: "NextTier" }, permanent: false }
const atOnce: Decision = { inPlace: false, destination: { _tag: "NextTier" }, permanent: false }
const toOperator: Decision = { inPlace: false, destination: { _tag: "Pause" }, permanent: true }
const dropped: Decision = { inPlace: false, destination: { _tag: "Skip" }, permanent: true }

/** Turns a route into a decision. In plain JavaScript a rule may return anything: a value that is not a route means the default. The decision copies the route's values. */
const decide = (route: unknown): Decision => {
  if (!Predicate.isObject(route)) return byDefault
  const { _tag, tier, delayMillis, reason } = route as { readonly [key: string]: unknown }
  switch (_tag) {
    case "Retry":
      return isNumber(tier) ? { inPlace: true, destination: { _tag: "Tier", tier }, permanent: false } : byDefault
    case "NextTier":
      return atOnce
    case "Tier":
      return isNumber(tier) ? { inPlace: false, destination: { _tag, tier }, permanent: false } : byDefault
    case "After":
      return isNumber(delayMillis)
        ? { inPlace: false, destination: { _tag, delayMillis }, permanent: false }
        : byDefault
    case "DeadLetter": {
      const destination = { _tag, reason: typeof reason === "string" ? reason : undefined } as const
      return { inPlace: false, destination, permanent: true }
    }
    case "Pause":
      return toOperator
    case "Skip":
      return dropped
    default:
      return byDefault
  }
}

/** A dead letter by `Outcome.deadLetter` is a decision of the handler, not a failure that no attempt cures. */
const ofResult = (decision: Decision, { error }: Failure): Decision =>
  decision.destination._tag === "DeadLetter" && Results.isDecision(error)
    ? { ...decision, destination: { ...decision.destination, isDecision: true } }
    : decision

type Rule<E> = Route.Route | ((error: E) => Route.Route)

/** The binding's own rule for a typed failure. A rule that returns nothing counts as the default. */
const typed = <E>(onError: OnError<E> | undefined): ((failure: Failure) => Route.Route | undefined) => {
  if (onError === undefined) return () => undefined
  // A typed failure of this binding's own handler is an E, and a rule is only asked about errors of its tag.
  if (typeof onError === "function") return ({ error }) => routeBy("onError", onError(error as E)) ?? Route.retry
  const rules = new Map(Object.entries(onError) as ReadonlyArray<[string, Rule<E>]>)
  return ({ tag, error }) => {
    const rule = tag === undefined ? undefined : rules.get(tag)
    if (rule === undefined) return undefined
    return (typeof rule === "function" ? routeBy(`onError.${tag}`, rule(error as E)) : rule) ?? Route.retry
  }
}

/** The answer of the classifier, which is a route, or a decision in the seed's words. */
const byClassifier = (classifier: ExceptionClassifier | undefined, failure: Failure, tier: number): unknown => {
  const answer: unknown = routeBy("the classifier", classifier?.(failure, tier))
  if (!Predicate.isObject(answer) || !("routing" in answer)) return answer
  const { routing, targetTier } = answer as { readonly [key: string]: unknown }
  switch (routing) {
    case "SKIP_TO_TIER":
      return isNumber(targetTier) ? Route.retryThenTier(targetTier) : Route.retry
    case "DEAD_LETTER":
      return Route.deadLetter()
    case "PAUSE_CONTAINER":
      return Route.pause
    default:
      return Route.retry
  }
}

const routeBy = <A>(what: string, route: A): A => UserFunction.plain(what, route, "a Route")

const isNumber = (value: unknown): value is number => typeof value === "number" && !Number.isNaN(value)
