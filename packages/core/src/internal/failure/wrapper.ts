/**
 * Errors that only wrap another one.
 */
import type { ErrorSummary } from "../../Failure.ts"

/** The class of the errors that `Effect.try` and `Effect.tryPromise` wrap whatever was thrown in: it says nothing, its cause does. */
export const isWrapper = ({ className }: ErrorSummary): boolean => className === "UnknownError"
