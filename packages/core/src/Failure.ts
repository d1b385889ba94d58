/**
 * The failure of a handler, as far as the connector knows it. Classifiers decide by it; events and dead letters show it.
 *
 * It has one shape for typed errors, defects and anything else that JavaScript code may throw (ruling 16).
 */

/** Name and message of one error. */
export interface ErrorSummary {
  /** Never empty: the `_tag` of a tagged error, else the error's own name, else its class, else its type. */
  readonly className: string
  /** May be empty. An object without a message shows the names of its fields, such as `{code, orderId}`, and no value of one. */
  readonly message: string
}

/** The failure of one attempt. Reading a field never throws, except inside `error`, which is the thrown value itself. */
export interface Failure extends ErrorSummary {
  /** The stack trace as text. Empty when the value has none. */
  readonly stackTrace: string
  /** The `_tag` of a tagged error, by which `onError` finds its rule. Undefined when the error has none. */
  readonly tag: string | undefined
  /** The value that the handler failed with. */
  readonly error: unknown
  /** The chain of `cause`, the outermost first: at most ten errors. It ends where it would repeat. The cause of an `AggregateError` without one is the first of its errors. */
  readonly causes: ReadonlyArray<ErrorSummary>
}

/**
 * Why a record is in the dead letter topic (`x-eventbus-dlt-reason`, connector seed §4.7).
 *
 * - `RETRIES_EXHAUSTED`: its attempts in all tiers are used up.
 * - `NON_RETRYABLE`: its error cannot be cured by another attempt.
 * - `MANUAL`: an operator dead-lettered it, or its handler did so by `Outcome.deadLetter`.
 * - `KEY_BLOCKED`: an earlier record of its key waited for too long, and order per key is kept.
 */
export type DeadLetterReason = "RETRIES_EXHAUSTED" | "NON_RETRYABLE" | "MANUAL" | "KEY_BLOCKED"

/** The failure of a dead letter. The function `fingerprint` of the dead letter settings may group dead letters by it. */
export interface FailureToGroup {
  /** Why the record was given up. Undefined for a record that another system dead-lettered. */
  readonly reason: DeadLetterReason | undefined
  /** The class of the last error. Never empty. */
  readonly exceptionClass: string
  /** The message of the last error. May be empty. */
  readonly message: string
  /** The chain of causes, the outermost first: at most ten. */
  readonly causes: ReadonlyArray<ErrorSummary>
  /** The place in the application that the error comes from, without line and column, such as `charge payments/charge.ts`. Undefined when its stack trace names none. */
  readonly frame: string | undefined
  /** Where in the record the part is that could not be decoded. Undefined when the record could be decoded, or the serde names no path. */
  readonly decodePath: string | undefined
  /** The topic that the record was first in. */
  readonly originalTopic: string
}

export { fieldsText } from "./internal/failure/fieldsText.ts"
