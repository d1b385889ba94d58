/**
 * Where a record goes whose handler failed.
 */
import { Data, Duration, Option } from "effect"

/**
 * - `Retry`: try again in place (the blocking attempts of the binding's `RetryPolicy`), and when those are used up, go to the next retry
 *   tier; behind the last one, take the route of an exhausted record.
 * - `NextTier`: the same without another attempt in place.
 * - `Tier`: to this retry tier at once. A tier at or behind the one that the record is in means the next; one that does not exist, the
 *   dead letter topic (ruling 15).
 * - `After`: at once to the first tier ahead whose delay is at least `delayMillis`, or else to the last one.
 * - `DeadLetter`: publish to the dead letter topic at once, without another attempt; `reason` is free text for whoever reads it there.
 * - `Pause`: keep the record unfinished and pause the whole binding for reason `operator`, until somebody resumes it.
 * - `Skip`: drop the record on purpose. It counts as finished and is gone for this group.
 */
export type Route = Data.TaggedEnum<{
  Retry: Record<never, never>
  NextTier: Record<never, never>
  Tier: { readonly tier: number }
  After: { readonly delayMillis: number }
  DeadLetter: { readonly reason: string | undefined }
  Pause: Record<never, never>
  Skip: Record<never, never>
}>

const constructors = Data.taggedEnum<Route>()

/** Try again in place, then in the tiers. The default for defects and for errors without a rule. */
export const retry: Route = constructors.Retry()

/** To the next tier at once. */
export const nextTier: Route = constructors.NextTier()

/** To retry tier `n` (from 1) at once. */
export const tier = (n: number): Route => constructors.Tier({ tier: n })

/** To the tier that waits at least so long, such as what a `Retry-After` asks for. What is no duration counts as zero: the next tier. */
export const after = (delay: Duration.Input): Route =>
  constructors.After({
    delayMillis: Option.match(Duration.fromInput(delay), { onNone: () => 0, onSome: Duration.toMillis })
  })

/** To the dead letter topic at once. */
export const deadLetter = (reason?: string): Route => constructors.DeadLetter({ reason })

/** Keep the record and pause the binding until an operator resumes it. */
export const pause: Route = constructors.Pause()

/** Drop the record on purpose. */
export const skip: Route = constructors.Skip()

/** Exhaustive match over the routes. */
export const match = constructors.$match
