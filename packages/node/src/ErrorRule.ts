/**
 * Rules for errors by their class: where a record goes whose handler threw one.
 *
 * ```ts
 * import { after, deadLetter, on, skip } from "@eventbus/node"
 *
 * class CardDeclined extends Error {}
 * class Duplicate extends Error {}
 * class RateLimited extends Error {
 *   retryAfterSeconds = 30
 * }
 *
 * export const rules = [
 *   on(CardDeclined, deadLetter("card declined")),
 *   on(Duplicate, skip),
 *   on(RateLimited, (error) => after(error.retryAfterSeconds * 1_000))
 * ]
 * ```
 */
import { Route } from "@eventbus/core"
import { millisOf } from "./internal/millisOf.ts"
import type { DurationValue } from "./PlainValues.ts"

// biome-ignore lint/suspicious/noExplicitAny: a class of errors may have a constructor of any kind
type Class<E> = abstract new (...args: any) => E

/** A rule of a consumer's `onError`. `on` makes one. */
export interface ErrorRule {
  /** The name of the class, for messages. */
  readonly className: string
  /** The route of a thrown value, or undefined when the rule is not about it. */
  readonly routeOf: (thrown: unknown) => Route.Route | undefined
  /** The route, where it is the same for all errors of the class. */
  readonly route: Route.Route | undefined
}

/**
 * The rule for errors that are instances of a class, its subclasses included. The route is the same for all of them, or a function of the error. The first rule of a consumer
 * that is about an error counts. Throws a `TypeError` when the first argument is no class.
 */
export const on = <E>(errorClass: Class<E>, route: Route.Route | ((error: NoInfer<E>) => Route.Route)): ErrorRule => {
  if (typeof errorClass !== "function") throw new TypeError("on: the first argument is a class of errors")
  return {
    className: errorClass.name,
    route: typeof route === "function" ? undefined : route,
    routeOf: (thrown) => {
      if (!(thrown instanceof errorClass)) return undefined
      return typeof route === "function" ? route(thrown) : route
    }
  }
}

/** Try again in place, then in the next retry topic, behind the last one the dead letter topic. The default for errors without a rule. */
export const retry: Route.Route = Route.retry

/** Try again in place, then go to retry topic `n` (from 1) instead of the next one. */
export const retryThenTier: (n: number) => Route.Route = Route.retryThenTier

/** Go to the next retry topic at once. */
export const nextTier: Route.Route = Route.nextTier

/** Go to retry topic `n` (from 1) at once. A topic at or behind the one that the record is in means the next one. */
export const tier: (n: number) => Route.Route = Route.tier

/** Go to the first retry topic that waits at least this long, such as the delay of a `Retry-After` header. 0 or more. A text that is no duration means `retry`. */
export const after = (delay: DurationValue): Route.Route => Route.after(millisOf(delay))

/** Go to the dead letter topic at once. `reason` is free text for people who read the dead letter. Default: none. */
export const deadLetter: (reason?: string) => Route.Route = Route.deadLetter

/** Keep the record and pause the consumer until an operator resumes it. */
export const pause: Route.Route = Route.pause

/** Drop the record on purpose: it counts as handled. */
export const skip: Route.Route = Route.skip
