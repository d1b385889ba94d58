/**
 * Where a record goes whose handler failed.
 */
import { Data } from "effect"

/**
 * - `Retry`: try again in place (the blocking attempts of the binding's `RetryPolicy`), and when those are used up, take the route of
 *   an exhausted record.
 * - `DeadLetter`: publish to the dead letter topic at once, without another attempt; `reason` is free text for whoever reads it there.
 * - `Pause`: keep the record unfinished and pause the whole binding for reason `operator`, until somebody resumes it.
 * - `Skip`: drop the record on purpose. It counts as finished and is gone for this group.
 */
export type Route = Data.TaggedEnum<{
  Retry: Record<never, never>
  DeadLetter: { readonly reason: string | undefined }
  Pause: Record<never, never>
  Skip: Record<never, never>
}>

const constructors = Data.taggedEnum<Route>()

/** Try again in place, then take the route of an exhausted record. The default for defects and for errors without a rule. */
export const retry: Route = constructors.Retry()

/** To the dead letter topic at once. */
export const deadLetter = (reason?: string): Route => constructors.DeadLetter({ reason })

/** Keep the record and pause the binding until an operator resumes it. */
export const pause: Route = constructors.Pause()

/** Drop the record on purpose. */
export const skip: Route = constructors.Skip()

/** Exhaustive match over the routes. */
export const match = constructors.$match
