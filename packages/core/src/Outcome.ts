/**
 * Results instead of errors: a handler may succeed with one of these, and its record goes where the result says (resilient consumer seed §2).
 *
 * Any other success is a success, and an error that is raised instead keeps its route (ruling 68). What can be failed with is failed with: both results
 * are errors as well, and mean the same as an error of the handler.
 */
import { Effect, Schema } from "effect"
import * as Failure from "./internal/failure/failure.ts"

export type Outcome = SuccessResult | RetryableResult | ErrorResult

/** The record is done: its offset is committed, nothing is published. */
export interface SuccessResult {
  readonly _tag: "SuccessResult"
}

/** A failure that may pass: attempts in place, then the next retry tier, behind the last one the dead letter topic. */
export class RetryableResult extends Schema.TaggedError<RetryableResult>()("RetryableResult", {
  /** The error behind it, of any kind. */
  cause: Schema.optionalKey(Schema.Unknown)
}) {
  override get message(): string {
    return messageOf(this.cause, "the handler asks for another attempt")
  }
}

/** A failure that stays: to the dead letter topic at once, from whatever tier, reason `NON_RETRYABLE`. */
export class ErrorResult extends Schema.TaggedError<ErrorResult>()("ErrorResult", {
  /** The error behind it, of any kind. */
  cause: Schema.optionalKey(Schema.Unknown)
}) {
  override get message(): string {
    return messageOf(this.cause, "the handler gave the record up")
  }
}

/** The record is done. */
export const success: Outcome = { _tag: "SuccessResult" }

/** The record failed and may succeed later: network timeout, database connection, rate limit, a service that is down. */
export const retry = (cause?: unknown): Outcome => new RetryableResult(cause === undefined ? {} : { cause })

/** The record can never succeed: wrong format, a business rule, missing data. */
export const failure = (cause?: unknown): Outcome => new ErrorResult(cause === undefined ? {} : { cause })

/** Fails with the result that a handler succeeded with, if it is a failed one; every other value is a success. */
export const toEffect = (value: unknown): Effect.Effect<void, RetryableResult | ErrorResult> =>
  typeof value === "object" && isFailed(value) ? Effect.fail(value) : Effect.void

/** Whether a value is a failed result. Asking never throws. */
export const isFailed = (value: unknown): value is RetryableResult | ErrorResult => {
  try {
    return value instanceof RetryableResult || value instanceof ErrorResult
  } catch {
    return false
  }
}

const messageOf = (cause: unknown, otherwise: string): string =>
  cause === undefined ? otherwise : Failure.fromUnknown(cause).message
