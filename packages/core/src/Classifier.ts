/**
 * What an error means for the record that it failed, where its type does not say: defects, errors without a rule in `onError`, and settings from a
 * file (connector seed §4.6, §5).
 *
 * A typed route in `onError` comes first; then the binding's `classifier` is asked, then its `exceptions` (ruling 58). An error that none of them
 * knows is tried again in place and goes to the next retry tier.
 */
import type { ConfigurationIssue } from "./EventBusError.ts"
import * as ErrorPattern from "./internal/failure/errorPattern.ts"
import type { Failure } from "./internal/failure/failure.ts"

/** What is known of the error. Reading it never throws, except `error`, the value itself. */
export type Failed = Pick<Failure, "className" | "message" | "tag" | "causes" | "error">

/**
 * - `NEXT_TIER`: the attempts in place, then the next retry tier.
 * - `SKIP_TO_TIER`: the attempts in place, then tier `targetTier`. One at or behind the current tier means the next tier; one that does not exist,
 *   the dead letter topic (ruling 15).
 * - `DEAD_LETTER`: to the dead letter topic at once, reason `NON_RETRYABLE`.
 * - `PAUSE_CONTAINER`: at once keep the record and pause the binding for reason `operator` (ruling 57).
 */
export type ExceptionRouting = "NEXT_TIER" | "SKIP_TO_TIER" | "DEAD_LETTER" | "PAUSE_CONTAINER"

export interface ExceptionRoutingDecision {
  readonly routing: ExceptionRouting
  /** The retry tier for `SKIP_TO_TIER`, from 1; otherwise -1. */
  readonly targetTier: number
}

/**
 * Decides by the error and the tier that the record is in (0 is the main topic). `undefined` is no opinion: the lists are asked. Called for every
 * failed attempt, so it should be quick and keep no state. One that throws counts as `NEXT_TIER`.
 */
export type ExceptionClassifier = (failed: Failed, currentTier: number) => ExceptionRoutingDecision | undefined

export const nextTier = (): ExceptionRoutingDecision => ({ routing: "NEXT_TIER", targetTier: -1 })

export const skipToTier = (tier: number): ExceptionRoutingDecision => ({ routing: "SKIP_TO_TIER", targetTier: tier })

export const deadLetter = (): ExceptionRoutingDecision => ({ routing: "DEAD_LETTER", targetTier: -1 })

export const pauseContainer = (): ExceptionRoutingDecision => ({ routing: "PAUSE_CONTAINER", targetTier: -1 })

/**
 * Names an error: the name of its class, its `_tag`, a qualified name such as `java.net.SocketTimeoutException` (an error that is called
 * `SocketTimeoutException` matches it, and the other way round), a `RegExp` on its message, or such an expression as text: `/timed? out/i`. Names are case-sensitive; superclasses do not match.
 *
 * An expression sees the first 1024 characters of a message. One with nested repetition, such as `(a+)+$`, may still take very long: it runs on the
 * thread that handles the records.
 */
export type Pattern = string | RegExp

/**
 * Errors by pattern. A pattern matches an error whose own name or message fits, or that of one of its causes. When several lists match, the first of
 * these wins: `nonRetryable`, `skipToTier`, `retryable`.
 */
export interface ExceptionLists {
  /** `retryableExceptions`. Default: all. An error outside a list that is not empty gets no attempt in place and goes to the next tier. */
  readonly retryable?: ReadonlyArray<Pattern>
  /** `nonRetryableExceptions`: to the dead letter topic at once. Default: none. */
  readonly nonRetryable?: ReadonlyArray<Pattern>
  /**
   * `skipToTierMapping`: pattern (as text) to the tier that follows the attempts in place, from 1. Default: none. When several match, the outermost
   * error decides, then the order of the entries.
   */
  readonly skipToTier?: ReadonlyMap<string, number> | { readonly [pattern: string]: number }
}

/** All mistakes of the lists, for a binding with so many retry tiers. Empty: they can be used. */
export const problems = (lists: ExceptionLists, tiers: number): ReadonlyArray<ConfigurationIssue> => {
  const retryable = parseAll("retryable", lists.retryable ?? [])
  const nonRetryable = parseAll("nonRetryable", lists.nonRetryable ?? [])
  const skips = Array.from(skipEntries(lists), ([pattern, tier]) => ({
    path: `skipToTier.${pattern}`,
    found: pattern,
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
      .map(({ path, tier }) => ({ path, found: String(tier), allowed: allowedTiers(tiers) }))
  ]
}

/** The entries of the skip mapping: a record's own ones only. */
export const skipEntries = ({ skipToTier = {} }: ExceptionLists): ReadonlyMap<string, number> =>
  skipToTier instanceof Map ? skipToTier : new Map(Object.entries(skipToTier))

interface Entry {
  readonly path: string
  readonly found: string
  readonly parsed: ErrorPattern.ErrorPattern
}

const parseAll = (list: string, patterns: ReadonlyArray<Pattern>): ReadonlyArray<Entry> =>
  patterns.map((pattern, index) => ({
    path: `${list}[${index}]`,
    found: String(pattern),
    parsed: ErrorPattern.parse(pattern)
  }))

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

const allowedTiers = (tiers: number): string =>
  tiers === 0 ? "no entry: the binding has no retry tiers" : `a retry tier, 1 to ${tiers}`
