/**
 * Where a record goes after its handler failed. Every way to decide about an error ends in a route: `onError`, a classifier, the exception lists and
 * the results of `Outcome`.
 */
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import { toMillis } from "./internal/base/durations.ts"
import type { Time } from "./Time.ts"

/**
 * - `Retry`: try again in place, up to the blocking attempts of the binding's `RetryPolicy`. When those are used up, go to retry tier `tier`; undefined means
 *   the next one. Behind the last tier the record is exhausted.
 * - `NextTier`: go to the next tier without another attempt in place.
 * - `Tier`: go to this retry tier at once. A tier at or behind the one that the record is in means the next one. A tier that does not exist means the
 *   dead letter topic (ruling 15); a binding refuses it where it stands in its `onError`.
 * - `After`: go at once to the first tier ahead whose delay is at least `delayMillis`, or else to the last one.
 * - `DeadLetter`: publish to the dead letter topic at once, without another attempt. `reason` is free text for people who read the dead letter.
 * - `Pause`: keep the record unfinished and pause the whole binding for reason `operator`, until somebody resumes it.
 * - `Skip`: drop the record on purpose. It counts as finished and is gone for this group.
 */
export type Route = Retry | NextTier | Tier | After | DeadLetter | Pause | Skip

/** Try again in place, then in a tier. */
export interface Retry {
  /** Its kind. */
  readonly _tag: "Retry"
  /** The tier that follows the attempts in place, from 1. Undefined: the next one. */
  readonly tier: number | undefined
}

/** Go to the next tier at once. */
export interface NextTier {
  /** Its kind. */
  readonly _tag: "NextTier"
}

/** Go to a tier at once. */
export interface Tier {
  /** Its kind. */
  readonly _tag: "Tier"
  /** Number of the tier, from 1. */
  readonly tier: number
}

/** Go to a tier by its delay. */
export interface After {
  /** Its kind. */
  readonly _tag: "After"
  /** The least delay of the tier, in milliseconds. */
  readonly delayMillis: number
}

/** Go to the dead letter topic at once. */
export interface DeadLetter {
  /** Its kind. */
  readonly _tag: "DeadLetter"
  /** Text for header `x-eventbus-dlt-detail`. Undefined: none. */
  readonly reason: string | undefined
}

/** Keep the record and pause the binding. */
export interface Pause {
  /** Its kind. */
  readonly _tag: "Pause"
}

/** Drop the record. */
export interface Skip {
  /** Its kind. */
  readonly _tag: "Skip"
}

const constructors = Data.taggedEnum<Route>()

/** Try again in place, then in the next tier. The default for defects and for errors without a rule. */
export const retry: Route = constructors.Retry({ tier: undefined })

/** Try again in place, then go to retry tier `n` (from 1) instead of the next one. */
export const retryThenTier = (n: number): Route => constructors.Retry({ tier: n })

/** Go to the next tier at once. */
export const nextTier: Route = constructors.NextTier()

/** Go to retry tier `n` (from 1) at once. */
export const tier = (n: number): Route => constructors.Tier({ tier: n })

/**
 * Go to the first tier that waits at least this long, such as the delay of a `Retry-After` header. 0 or more. A value that is no duration is no route: a binding refuses it
 * in its `onError`, and where a function gives it the record is retried, as after any answer that is no route.
 */
export const after = (delay: Time): Route => constructors.After({ delayMillis: delayOf(delay) })

/** NaN for what is no duration. Infinity asks for the last tier. */
const delayOf = (delay: unknown): number => {
  const isInfinite = delay === Number.POSITIVE_INFINITY || (Duration.isDuration(delay) && !Duration.isFinite(delay))
  return isInfinite ? Number.POSITIVE_INFINITY : toMillis(delay)
}

/** Go to the dead letter topic at once. `reason` is free text for people who read the dead letter. Default: none. */
export const deadLetter = (reason?: string): Route => constructors.DeadLetter({ reason })

/** Keep the record and pause the binding until an operator resumes it. */
export const pause: Route = constructors.Pause()

/** Drop the record on purpose. */
export const skip: Route = constructors.Skip()

/** A route in words, for people, such as `attempts in place, then the next tier`. */
export const describe = (route: Route): string => {
  switch (route._tag) {
    case "Retry":
      return `attempts in place, then ${route.tier === undefined ? "the next tier" : `tier ${route.tier}`}`
    case "NextTier":
      return "the next tier"
    case "Tier":
      return `tier ${route.tier}`
    case "After":
      return `the first tier that waits ${route.delayMillis} ms`
    case "DeadLetter":
      return route.reason === undefined ? "dead letter topic" : `dead letter topic (${route.reason})`
    case "Pause":
      return "pause of the binding"
    case "Skip":
      return "skip"
  }
}
