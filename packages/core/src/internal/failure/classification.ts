/**
 * Decides the route of a record from the cause of its failed delivery. Total: it decides for every thrown value, also when a user's rule throws.
 *
 * The first rule that answers wins (ruling 58): the result of the handler, `onError` by the error's tag, the classifier function, the lists
 * (non-retryable, skip mapping, retryable), the name of an authentication error. Otherwise the record is attempted again in place, then goes to the next tier.
 */
import { Cause, Predicate } from "effect"
import type { OnError } from "../../BindingOptions.ts"
import { type ExceptionClassifier, type ExceptionLists, skipEntries } from "../../Classifier.ts"
import * as Outcome from "../../Outcome.ts"
import type { Route } from "../../Route.ts"
import * as ErrorPattern from "./errorPattern.ts"
import * as Failure from "./failure.ts"

/** Where a record goes when it is not attempted again in place. */
export type Destination = Exclude<Route, { readonly _tag: "Retry" }>

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

type Answer = Decision | undefined

/** Decides about a cause in a tier (0 is the main topic). Pass `failure` when the caller has already read it from the cause. */
export type Classify = (cause: Cause.Cause<unknown>, tier: number, failure?: Failure.Failure) => Decision

/** Makes the classifier of one binding. It reads the rules once. */
export const make = <E>(rules: Rules<E>): Classify => {
  const byType = typed(rules.onError)
  const byLists = listed(rules.exceptions)
  return (cause, tier, known) => {
    try {
      const failure = known ?? Failure.fromCause(cause)
      if (failure === undefined) return byDefault
      return (
        byResult(failure.error) ??
        (cause.reasons.some(Cause.isFailReason) ? byType(failure) : undefined) ??
        byClassifier(rules.classifier, failure, tier) ??
        byLists(failure)
      )
    } catch {
      // A rule or a classifier threw. The handler's failure is still the one that is reported, and the record keeps its attempts.
      return byDefault
    }
  }
}

const byDefault: Decision = { inPlace: true, destination: { _tag: "NextTier" }, permanent: false }
const atOnce: Decision = { inPlace: false, destination: { _tag: "NextTier" }, permanent: false }
const toDeadLetter: Decision = {
  inPlace: false,
  destination: { _tag: "DeadLetter", reason: undefined },
  permanent: true
}
const toOperator: Decision = { inPlace: false, destination: { _tag: "Pause" }, permanent: true }
const dropped: Decision = { inPlace: false, destination: { _tag: "Skip" }, permanent: true }

const byResult = (error: unknown): Answer => {
  if (!Outcome.isFailed(error)) return undefined
  return error._tag === "RetryableResult" ? byDefault : toDeadLetter
}

type Rule<E> = Route | ((error: E) => Route)

/** The binding's own rule for a typed failure. */
const typed = <E>(onError: OnError<E> | undefined): ((failure: Failure.Failure) => Answer) => {
  if (onError === undefined) return () => undefined
  // A typed failure of this binding's own handler is an E, and a rule only sees errors of its tag.
  if (typeof onError === "function") return ({ error }) => fromRoute(onError(error as E))
  const rules = new Map(Object.entries(onError) as ReadonlyArray<[string, Rule<E>]>)
  return ({ tag, error }) => {
    const rule = tag === undefined ? undefined : rules.get(tag)
    if (rule === undefined) return undefined
    return fromRoute(typeof rule === "function" ? rule(error as E) : rule)
  }
}

/** Reads a route that a rule returned. Plain JavaScript may return anything; a value that is not a route means the default. */
const fromRoute = (route: unknown): Decision => {
  if (!Predicate.isObject(route)) return byDefault
  const { _tag, tier, delayMillis, reason } = route as { readonly [key: string]: unknown }
  switch (_tag) {
    case "NextTier":
      return atOnce
    case "Tier":
      return isNumber(tier) ? { inPlace: false, destination: { _tag, tier }, permanent: false } : byDefault
    case "After":
      return isNumber(delayMillis)
        ? { inPlace: false, destination: { _tag, delayMillis }, permanent: false }
        : byDefault
    case "DeadLetter":
      return { ...toDeadLetter, destination: { _tag, reason: typeof reason === "string" ? reason : undefined } }
    case "Pause":
      return toOperator
    case "Skip":
      return dropped
    default:
      return byDefault
  }
}

const byClassifier = (classifier: ExceptionClassifier | undefined, failure: Failure.Failure, tier: number): Answer => {
  const decision: unknown = classifier?.(failure, tier)
  if (decision === undefined || decision === null) return undefined
  const { routing, targetTier } = decision as { readonly [key: string]: unknown }
  switch (routing) {
    case "SKIP_TO_TIER":
      return isNumber(targetTier) ? skipTo(targetTier) : byDefault
    case "DEAD_LETTER":
      return toDeadLetter
    case "PAUSE_CONTAINER":
      return toOperator
    default:
      return byDefault
  }
}

/** `AuthenticationException`, `KafkaJSSASLAuthenticationError`, our own `AuthenticationFailed`: the server would refuse the same credentials again. */
const authentication = /Authentication(Error|Exception|Failed|Failure)$/

const byName = (chain: ReadonlyArray<Failure.ErrorSummary>): Decision =>
  chain.some(({ className }) => authentication.test(className)) ? toDeadLetter : byDefault

/** Decides by the lists of a binding. They are the last rule, so they always answer. */
const listed = (lists: ExceptionLists | undefined): ((failure: Failure.Failure) => Decision) => {
  if (lists === undefined) return (failure) => byName(errorChain(failure))
  const nonRetryable = (lists.nonRetryable ?? []).map(ErrorPattern.parse)
  const retryable = (lists.retryable ?? []).map(ErrorPattern.parse)
  const skips = Array.from(
    skipEntries(lists),
    ([pattern, tier]) => [ErrorPattern.parse(pattern), skipTo(tier)] as const
  )
  return (failure) => {
    const chain = errorChain(failure)
    if (matchesAny(nonRetryable, chain)) return toDeadLetter
    for (const error of chain) {
      const skip = skips.find(([pattern]) => ErrorPattern.matches(pattern, error))
      if (skip !== undefined) return skip[1]
    }
    if (matchesAny(retryable, chain)) return byDefault
    const named = byName(chain)
    return retryable.length === 0 || named.permanent ? named : atOnce
  }
}

/** The error and its causes, outermost first. */
const errorChain = (failure: Failure.Failure): ReadonlyArray<Failure.ErrorSummary> => [failure, ...failure.causes]

const matchesAny = (
  patterns: ReadonlyArray<ErrorPattern.ErrorPattern>,
  chain: ReadonlyArray<Failure.ErrorSummary>
): boolean => chain.some((error) => patterns.some((pattern) => ErrorPattern.matches(pattern, error)))

/** The attempts in place come first: only the attempt that exhausts them skips to the tier (connector seed appendix). */
const skipTo = (tier: number): Decision => ({ inPlace: true, destination: { _tag: "Tier", tier }, permanent: false })

const isNumber = (value: unknown): value is number => typeof value === "number" && !Number.isNaN(value)
