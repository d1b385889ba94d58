/**
 * The failure of a handler, as far as the connector knows it. Classifiers decide by it; events and dead letters show it.
 *
 * It has one shape for typed errors, defects and anything else that JavaScript code may throw (ruling 16).
 */

/** Name and message of one error. */
export interface ErrorSummary {
  /** Never empty: the `_tag` of a tagged error, else the error's own name, else its class, else its type. */
  readonly className: string
  /** May be empty. An object without a message shows its fields as JSON. */
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
  /** The chain of `cause`, the outermost first: at most ten errors. It ends where it would repeat. */
  readonly causes: ReadonlyArray<ErrorSummary>
}

/**
 * Why a record is in the dead letter topic (`x-eventbus-dlt-reason`, connector seed §4.7).
 *
 * - `RETRIES_EXHAUSTED`: its attempts in all tiers are used up.
 * - `NON_RETRYABLE`: its error cannot be cured by another attempt.
 * - `MANUAL`: an operator dead-lettered it, or its handler did so by `Outcome.deadLetter`.
 */
export type DeadLetterReason = "RETRIES_EXHAUSTED" | "NON_RETRYABLE" | "MANUAL"
