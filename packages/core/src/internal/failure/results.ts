/**
 * Results that a handler succeeds with (`Outcome`): which of them are failures, and the route of each.
 */
import * as Effect from "effect/Effect"
import { DeadLetterResult, ErrorResult, RetryableResult } from "../../Outcome.ts"
import * as Route from "../../Route.ts"
import * as UserFunction from "../../UserFunction.ts"

type FailedResult = RetryableResult | ErrorResult | DeadLetterResult

/** Fails with the result that a handler succeeded with, if it is a failed one; every other value is a success. */
export const toEffect = (value: unknown): Effect.Effect<void, FailedResult> => {
  if (value === undefined) return Effect.void
  if (typeof value === "object" && isFailed(value)) return Effect.fail(value)
  // An async function in `Effect.sync` succeeds with a Promise, which nobody waits for.
  UserFunction.settled("the handler", value)
  return Effect.void
}

/** The route of a failed result; undefined for every other value. */
export const routeOf = (error: unknown): Route.Route | undefined => {
  if (!isFailed(error)) return undefined
  if (error instanceof DeadLetterResult) return Route.deadLetter(error.reason)
  return error instanceof RetryableResult ? Route.retry : Route.deadLetter()
}

/** Whether the handler itself decided that its record is a dead letter (ruling 60). */
export const isDecision = (error: unknown): boolean => isFailed(error) && error instanceof DeadLetterResult

/** Whether a value is a failed result. Asking never throws. */
const isFailed = (value: unknown): value is FailedResult => {
  try {
    return value instanceof RetryableResult || value instanceof ErrorResult || value instanceof DeadLetterResult
  } catch {
    return false
  }
}
