/**
 * Failures of thrown values, as the connector reads them: for code that decides about errors, or tells of them, in the connector's words.
 */

/**
 * `fromCause`: the failure in a cause: its first typed error, or else its first defect; undefined when the cause holds interruptions only. `fromUnknown`: the failure that any thrown
 * value stands for. Neither throws.
 */
export { fromCause, fromUnknown } from "./internal/failure/failure.ts"
