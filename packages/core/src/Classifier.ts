/**
 * Rules for errors whose type does not say where their record goes: defects, errors without a rule in `onError`, and lists from a file (connector seed §4.6,
 * connector seed §5).
 *
 * The first rule with an answer wins (ruling 58): the `onError` rule of a typed error, then the binding's `classifier`, then the exception lists of its
 * `RetryPolicy`. An error that no rule knows is tried again in place and then goes to the next retry tier. Every rule ends in a `Route`.
 */
import type { Failure } from "./Failure.ts"
import type { Route } from "./Route.ts"

/**
 * The seed's words for a route. A classifier may still answer with them; `Route` says the same and more.
 *
 * - `NEXT_TIER`: `Route.retry`.
 * - `SKIP_TO_TIER`: `Route.retryThenTier(targetTier)`.
 * - `DEAD_LETTER`: `Route.deadLetter()`, reason `NON_RETRYABLE`.
 * - `PAUSE_CONTAINER`: `Route.pause` (ruling 57).
 */
export type ExceptionRouting = "NEXT_TIER" | "SKIP_TO_TIER" | "DEAD_LETTER" | "PAUSE_CONTAINER"

/** The seed's answer of a classifier (connector seed §5). */
export interface ExceptionRoutingDecision {
  /** The decision about the record. */
  readonly routing: ExceptionRouting
  /** The retry tier for `SKIP_TO_TIER`, from 1; otherwise -1. */
  readonly targetTier: number
}

/**
 * Decides by the failure and the tier that the record is in (0 is the main topic). `undefined` means no opinion: the lists are asked next.
 *
 * It is called for every failed attempt, so it must be quick and keep no state. A classifier that throws, or answers with something that is no route, means
 * `Route.retry`.
 */
export type ExceptionClassifier = (
  failure: Failure,
  currentTier: number
) => Route | ExceptionRoutingDecision | undefined

/**
 * Names an error: the name of its class, its `_tag`, a qualified name such as `java.net.SocketTimeoutException` (an error named `SocketTimeoutException`
 * matches it, and the other way round), a `RegExp` on its message, or such an expression as text: `/timed? out/i`. Names are case-sensitive;
 * superclasses do not match.
 *
 * An expression sees the first 1024 characters of a message. An expression with nested repetition, such as `(a+)+$`, may take very long: it runs on the thread that
 * handles the records.
 */
export type Pattern = string | RegExp

/**
 * Errors by pattern. A pattern matches an error whose own name or message fits, or that of one of its causes. When several lists match, the first of
 * these wins: `nonRetryableExceptions`, `skipToTierMapping`, `retryableExceptions`.
 */
export interface ExceptionLists {
  /** Errors that are tried again in place. Default: all. With a list, every other error goes to the next tier at once (`Route.nextTier`). */
  readonly retryableExceptions?: ReadonlyArray<Pattern>
  /** Errors that go to the dead letter topic at once (`Route.deadLetter`). Default: none. */
  readonly nonRetryableExceptions?: ReadonlyArray<Pattern>
  /**
   * Pattern (as text) to the tier that follows the attempts in place, from 1 (`Route.retryThenTier`). Default: none. When several patterns match, the outermost
   * error decides, then the order of the entries.
   */
  readonly skipToTierMapping?: ReadonlyMap<string, number> | { readonly [pattern: string]: number }
}
