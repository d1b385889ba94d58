/**
 * Failures of thrown values, as the connector reads them: for code that decides about errors, or tells of them, in the connector's words.
 */

/**
 * `fromCause`: the failure in a cause: its first typed error, or else its first defect; undefined when the cause holds interruptions only. `fromUnknown`: the failure that any thrown
 * value stands for. `printable`: an error whose stack traces are safe in a log line; undefined where it has none. None of them throws.
 */
export { fromCause, fromUnknown, printable } from "./internal/failure/failure.ts"

/** The failure in one line, its causes included. */
export { failureText } from "./internal/failure/failureText.ts"
