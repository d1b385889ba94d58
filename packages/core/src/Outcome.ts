/**
 * What a handler may answer with instead of failing, for teams that prefer values to errors (resilient consumer seed §2 and §3). It runs on the same
 * pipeline as errors do; an error that is raised instead of an answer is retried unless it is classified otherwise (ruling 68).
 */
import { Effect, Schema } from "effect"
import * as Failure from "./internal/failure.ts"

/** What `retry` stands for: the record is tried again, in place and in the tiers. */
export class RetryableResult extends Schema.TaggedError<RetryableResult>()("RetryableResult", {
  /** Why, as the handler said it. */
  reason: Schema.String,
  cause: Schema.Defect()
}) {
  override get message(): string {
    return this.reason
  }
}

/** What `failure` stands for: the record goes to the dead letter topic at once. */
export class ErrorResult extends Schema.TaggedError<ErrorResult>()("ErrorResult", {
  /** Why, as the handler said it. */
  reason: Schema.String,
  cause: Schema.Defect()
}) {
  override get message(): string {
    return this.reason
  }
}

/** Handled, to be tried again, or not to be handled at all. */
export class Outcome {
  readonly #result: RetryableResult | ErrorResult | undefined

  private constructor(result: RetryableResult | ErrorResult | undefined) {
    this.#result = result
  }

  static readonly success = new Outcome(undefined)
  static readonly retry = (error?: unknown) => new Outcome(new RetryableResult(described(error, "to be retried")))
  static readonly failure = (error?: unknown) => new Outcome(new ErrorResult(described(error, "not to be handled")))

  /** The answer of a handler as an effect: what is no outcome counts as success. */
  static readonly toEffect = (answer: unknown): Effect.Effect<unknown, RetryableResult | ErrorResult> =>
    answer instanceof Outcome && answer.#result !== undefined ? Effect.fail(answer.#result) : succeeded
}

const succeeded = Effect.void

const described = (error: unknown, fallback: string) => {
  if (error === undefined) return { reason: fallback, cause: undefined }
  const { className, message } = Failure.fromUnknown(error)
  return { reason: message === "" ? className : `${className}: ${message}`, cause: error }
}

/** Handled: the offset may be committed. */
export const success: Outcome = Outcome.success

/** To be tried again, as a retryable error would be. `error` is what was wrong, of any kind. */
export const retry: (error?: unknown) => Outcome = Outcome.retry

/** To the dead letter topic at once, reason `NON_RETRYABLE`. */
export const failure: (error?: unknown) => Outcome = Outcome.failure
