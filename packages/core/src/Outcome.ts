/**
 * Results instead of errors: a handler may succeed with one of these, and its record goes where the result says (resilient consumer seed §2).
 *
 * Every other success is a success, and an error that the handler raises instead keeps its own route (ruling 68). The failed results are errors as well: a handler may
 * fail with them, and that means the same.
 */
import * as Schema from "effect/Schema"
import * as Failure from "./internal/failure/failure.ts"

/** The answer of a result-based handler. */
export type Outcome = SuccessResult | RetryableResult | ErrorResult

/** The record is done: its offset is committed, nothing is published. */
export interface SuccessResult {
  /** Tells the results apart. */
  readonly _tag: "SuccessResult"
}

/** A failure that may pass (`Route.retry`): attempts in place, then the next retry tier, behind the last one the dead letter topic. */
export class RetryableResult extends Schema.TaggedError<RetryableResult>()("RetryableResult", {
  /** The error behind it, of any kind. Absent: none. */
  cause: Schema.optionalKey(Schema.Unknown)
}) {
  override get message(): string {
    return messageOf(this.cause, "the handler asks for another attempt")
  }
}

/** A failure that stays (`Route.deadLetter`): to the dead letter topic at once, from whatever tier, reason `NON_RETRYABLE`. */
export class ErrorResult extends Schema.TaggedError<ErrorResult>()("ErrorResult", {
  /** The error behind it, of any kind. Absent: none. */
  cause: Schema.optionalKey(Schema.Unknown)
}) {
  override get message(): string {
    return messageOf(this.cause, "the handler gave the record up")
  }
}

/** The handler gives the record away: to the dead letter topic at once, from whatever tier, reason `MANUAL` (ruling 60). Nothing failed, somebody has to look at it. */
export class DeadLetterResult extends Schema.TaggedError<DeadLetterResult>()("DeadLetterResult", {
  /** Text for header `x-eventbus-dlt-detail`. Absent: none. */
  reason: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return this.reason ?? "the handler gave the record to the dead letter topic"
  }
}

/** The record is done. */
export const success: Outcome = { _tag: "SuccessResult" }

/** The record failed and may succeed later: a network timeout, a lost database connection, a rate limit, a service that is down. */
export const retry = (cause?: unknown): Outcome => new RetryableResult(cause === undefined ? {} : { cause })

/** The record can never succeed: a wrong format, a broken business rule, missing data. */
export const failure = (cause?: unknown): Outcome => new ErrorResult(cause === undefined ? {} : { cause })

/**
 * A person has to decide about the record, such as an order above a limit: to the dead letter topic at once, reason `MANUAL`. `reason` is free text for people who read
 * the dead letter. Default: none.
 */
export const deadLetter = (reason?: string): DeadLetterResult =>
  new DeadLetterResult(reason === undefined ? {} : { reason })

const messageOf = (cause: unknown, otherwise: string): string =>
  cause === undefined ? otherwise : Failure.fromUnknown(cause).message
