/**
 * What a failure means for its record: whether attempts in place come first, and where it goes when they are used up (rulings 15, 16, 29 and 58).
 *
 * It never throws: a rule or classifier that does, or that answers what is no route, leaves the default.
 */
import { Cause, Predicate } from "effect"
import { type ExceptionClassifier, type ExceptionLists, matcher, skipEntries } from "../Classifier.ts"
import { ErrorResult, RetryableResult } from "../Outcome.ts"
import type * as Route from "../Route.ts"
import * as Failure from "./failure.ts"

/** Where a record goes that is not tried again in place. */
export type Destination = Exclude<Route.Route, { readonly _tag: "Retry" }>

export interface Decision {
  /** Whether attempts in place come first. */
  readonly inPlace: boolean
  readonly destination: Destination
  /** It says something about the record, nothing about a dependency: the circuit breaker does not count it (ruling 29). */
  readonly permanent: boolean
}

type Rule = Route.Route | ((error: never) => Route.Route)

export interface Options {
  /** Rules by tag, or one for all errors. */
  readonly onError?: Readonly<Record<string, Rule>> | ((error: never) => Route.Route) | undefined
  readonly classifier?: ExceptionClassifier | undefined
  readonly exceptions?: ExceptionLists | undefined
}

type Opinion = (cause: Cause.Cause<unknown>, tier: number) => Decision | undefined

/** The first opinion counts: an answer of the handler, the rule of the error's tag, the classifier, the lists. */
export const make = (options: Options): ((cause: Cause.Cause<unknown>, tier: number) => Decision) => {
  const opinions: ReadonlyArray<Opinion> = [
    byResult,
    ...(options.onError === undefined ? [] : [byRule(options.onError)]),
    ...(options.classifier === undefined ? [] : [byClassifier(options.classifier)]),
    ...(options.exceptions === undefined ? [] : [byLists(options.exceptions)])
  ]
  return (cause, tier) => {
    for (const opinion of opinions) {
      const decision = attempt(() => opinion(cause, tier))
      if (decision !== undefined) return decision
    }
    return retry
  }
}

const decide = (destination: Destination, inPlace: boolean): Decision => ({
  inPlace,
  destination,
  permanent: destination._tag === "DeadLetter" || destination._tag === "Skip"
})

const onward = { _tag: "NextTier" } as const
const retry = decide(onward, true)

const attempt = <A>(decide: () => A): A | undefined => {
  try {
    return decide()
  } catch {
    return undefined
  }
}

const tags: ReadonlySet<unknown> = new Set(["Retry", "NextTier", "Tier", "After", "DeadLetter", "Pause", "Skip"])

const isRoute = (value: unknown): value is Route.Route => Predicate.hasProperty(value, "_tag") && tags.has(value._tag)

const ofRoute = (route: unknown): Decision | undefined => {
  if (!isRoute(route)) return undefined
  return route._tag === "Retry" ? retry : decide(route, false)
}

const byResult: Opinion = (cause) => {
  const failed = cause.reasons.find(Cause.isFailReason)
  if (failed?.error instanceof ErrorResult) return decide({ _tag: "DeadLetter", reason: undefined }, false)
  return failed?.error instanceof RetryableResult ? retry : undefined
}

/** A rule is asked about typed errors only: what it is told is an error of the handler's type. */
const byRule = (onError: NonNullable<Options["onError"]>): Opinion => {
  const rules = typeof onError === "function" ? undefined : new Map(Object.entries(onError))
  return (cause) => {
    const failed = cause.reasons.find(Cause.isFailReason)
    if (failed === undefined) return undefined
    const error = failed.error as never
    if (rules === undefined) return typeof onError === "function" ? ofRoute(onError(error)) : undefined
    const tag = Predicate.hasProperty(failed.error, "_tag") ? failed.error._tag : undefined
    const rule = typeof tag === "string" ? rules.get(tag) : undefined
    return ofRoute(typeof rule === "function" ? rule(error) : rule)
  }
}

const byClassifier =
  (classifier: ExceptionClassifier): Opinion =>
  (cause, tier) => {
    const failure = Failure.fromCause(cause)
    const decision = failure === undefined ? undefined : classifier(failure, tier)
    switch (decision?.routing) {
      case "NEXT_TIER":
        return retry
      case "SKIP_TO_TIER":
        return decide({ _tag: "Tier", tier: decision.targetTier }, true)
      case "DEAD_LETTER":
        return decide({ _tag: "DeadLetter", reason: undefined }, false)
      case "PAUSE_CONTAINER":
        return decide({ _tag: "Pause" }, false)
      default:
        return undefined
    }
  }

const byLists = (lists: ExceptionLists): Opinion => {
  const isNonRetryable = matcher(lists.nonRetryable ?? [])
  const skips = skipEntries(lists).map(([pattern, tier]) => [matcher([pattern]), tier] as const)
  const isRetryable =
    lists.retryable === undefined || lists.retryable.length === 0 ? undefined : matcher(lists.retryable)
  return (cause) => {
    const failure = Failure.fromCause(cause)
    if (failure === undefined) return undefined
    if (isNonRetryable(failure)) return decide({ _tag: "DeadLetter", reason: undefined }, false)
    const skip = skips.find(([matches]) => matches(failure))
    if (skip !== undefined) return decide({ _tag: "Tier", tier: skip[1] }, true)
    return isRetryable === undefined || isRetryable(failure) ? retry : decide(onward, false)
  }
}
