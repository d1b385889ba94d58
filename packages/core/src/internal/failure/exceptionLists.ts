/**
 * The exception lists of a binding map an error's name or message to a route. They are the last rule.
 */
import type { ExceptionLists, Pattern } from "../../Classifier.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import type { ErrorSummary, Failure } from "../../Failure.ts"
import * as Route from "../../Route.ts"
import { shown } from "../base/shown.ts"
import * as ErrorPattern from "./errorPattern.ts"

/** The route that the lists give to a failure. Reads the lists once. */
export const compile = (lists: ExceptionLists): ((failure: Failure) => Route.Route) => {
  const nonRetryable = (lists.nonRetryableExceptions ?? []).map(ErrorPattern.parse)
  const retryable = (lists.retryableExceptions ?? []).map(ErrorPattern.parse)
  const skips = Array.from(
    skipEntries(lists),
    // The attempts in place come first: only the attempt that exhausts them skips (connector seed appendix).
    ([pattern, tier]) => [ErrorPattern.parse(pattern), Route.retryThenTier(tier)] as const
  )
  return (failure) => {
    const chain = [failure, ...failure.causes]
    if (matchesAny(nonRetryable, chain)) return toDeadLetter
    for (const error of chain) {
      const skip = skips.find(([pattern]) => ErrorPattern.matches(pattern, error))
      if (skip !== undefined) return skip[1]
    }
    if (matchesAny(retryable, chain)) return Route.retry
    if (chain.some(isAuthentication)) return toDeadLetter
    return retryable.length === 0 ? Route.retry : Route.nextTier
  }
}

const toDeadLetter = Route.deadLetter()

/** `AuthenticationException`, `KafkaJSSASLAuthenticationError`, our own `AuthenticationFailed`: the same credentials are refused again. */
const authentication = /Authentication(Error|Exception|Failed|Failure)$/

const isAuthentication = ({ className }: ErrorSummary): boolean => authentication.test(className)

const matchesAny = (patterns: ReadonlyArray<ErrorPattern.ErrorPattern>, chain: ReadonlyArray<ErrorSummary>): boolean =>
  chain.some((error) => patterns.some((pattern) => ErrorPattern.matches(pattern, error)))

/** All mistakes of the lists of a binding with this many retry tiers. Empty: the lists can be used. */
export const problems = (lists: ExceptionLists, tiers: number): ReadonlyArray<ConfigurationIssue> => {
  const retryable = parseAll("retryableExceptions", lists.retryableExceptions ?? [])
  const nonRetryable = parseAll("nonRetryableExceptions", lists.nonRetryableExceptions ?? [])
  const skips = Array.from(skipEntries(lists), ([pattern, tier]) => ({
    path: `skipToTierMapping.${textOf(pattern)}`,
    found: textOf(pattern),
    parsed: ErrorPattern.parse(pattern),
    tier
  }))
  return [
    ...[...retryable, ...nonRetryable, ...skips].flatMap(({ path, found, parsed }) =>
      parsed._tag === "Invalid" ? { path, found: JSON.stringify(found), allowed: parsed.allowed } : []
    ),
    ...overlap(retryable, nonRetryable),
    ...skips
      .filter(({ tier }) => !(Number.isInteger(tier) && tier >= 1 && tier <= tiers))
      .map(({ path, tier }) => ({ path, found: shown(tier), allowed: allowedTiers(tiers) }))
  ]
}

/** The entries of the mapping: own properties only. */
const skipEntries = ({ skipToTierMapping = {} }: ExceptionLists): ReadonlyMap<string, number> =>
  skipToTierMapping instanceof Map ? skipToTierMapping : new Map(Object.entries(skipToTierMapping))

interface Entry {
  readonly path: string
  readonly found: string
  readonly parsed: ErrorPattern.ErrorPattern
}

const parseAll = (list: string, patterns: ReadonlyArray<Pattern>): ReadonlyArray<Entry> =>
  patterns.map((pattern, index) => ({
    path: `${list}[${index}]`,
    found: textOf(pattern),
    parsed: ErrorPattern.parse(pattern)
  }))

/** A name, or an expression, as it is written. */
const textOf = (pattern: unknown): string => {
  try {
    return String(pattern)
  } catch {
    return shown(pattern)
  }
}

const overlap = (retryable: ReadonlyArray<Entry>, nonRetryable: ReadonlyArray<Entry>) => {
  const others = new Map(nonRetryable.map((entry) => [ErrorPattern.identity(entry.parsed), entry.path]))
  return retryable.flatMap(({ path, found, parsed }) => {
    const identity = ErrorPattern.identity(parsed)
    const other = identity === undefined ? undefined : others.get(identity)
    return other === undefined
      ? []
      : { path, found, allowed: `a pattern that does not match the same errors as ${other}` }
  })
}

/** The tiers that a rule may name, in words. */
export const allowedTiers = (tiers: number): string =>
  tiers === 0 ? "no entry: the binding has no retry tiers" : `a retry tier, 1 to ${tiers}`
