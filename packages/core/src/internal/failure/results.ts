/**
 * Results that a handler succeeds with (`Outcome`): which of them are failures, and the route of each.
 */
import { Effect } from "effect"
import { ErrorResult, RetryableResult } from "../../Outcome.ts"
import * as Route from "../../Route.ts"

type FailedResult = RetryableResult | ErrorResult

/** Fails with the result that a handler succeeded with, if it is a failed one; every other value is a success. */
export const toEffect = (value: unknown): Effect.Effect<void, FailedResult> =>
  typeof value === "object" && isFailed(value) ? Effect.fail(value) : Effect.void

/** The route of a failed result; undefined for every other value. */
export const routeOf = (error: unknown): Route.Route | undefined => {
  if (!isFailed(error)) return undefined
  return error._tag === "RetryableResult" ? Route.retry : Route.deadLetter()
}

/** Whether a value is a failed result. Asking never throws. */
const isFailed = (value: unknown): value is FailedResult => {
  try {
    return value instanceof RetryableResult || value instanceof ErrorResult
  } catch {
    return false
  }
}
