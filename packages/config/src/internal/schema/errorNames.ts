/**
 * Maps the names of errors in a file, such as `java.net.SocketTimeoutException`, to the error tags of a handler.
 */
import type { Classifier } from "@eventbus/core"
import type { RetrySettings } from "../../BindingSettings.ts"

/** The tags of a handler's errors, each with its other names. */
export type Names = ReadonlyMap<string, ReadonlyArray<string>>

const simpleNameOf = (name: string): string => name.slice(name.lastIndexOf(".") + 1)

const isExpression = (pattern: string): boolean => pattern.trim().startsWith("/")

/** The tags with this name, in full or by its last part. */
const tagsOf = (pattern: string, names: Names): ReadonlyArray<string> => {
  const name = pattern.trim()
  const simple = simpleNameOf(name)
  return Array.from(names).flatMap(([tag, others]) =>
    [tag, ...others].some(
      (each) => each === name || (simpleNameOf(each) === simple && !(each.includes(".") && name.includes(".")))
    )
      ? tag
      : []
  )
}

/** Errors of the language and of the connector, which every handler may have. */
const general = new Set([
  "Error",
  "AggregateError",
  "EvalError",
  "RangeError",
  "ReferenceError",
  "SyntaxError",
  "TypeError",
  "URIError",
  "DecodeFailure",
  "EncodeFailure",
  "ProcessingBudgetExceeded",
  "CallNotPermitted",
  "IdempotencyStoreError",
  "TimeoutError"
])

/** Whether a pattern names neither an error of the handler nor one that every handler may have. */
export const isUnknown = (pattern: string, names: Names): boolean =>
  !isExpression(pattern) && !general.has(pattern.trim()) && tagsOf(pattern, names).length === 0

/** The lists for core's classifier, with the handler's tags in place of the names in the file. */
export const exceptionsOf = (retry: RetrySettings, names: Names | undefined): Classifier.ExceptionLists => {
  const translate = (pattern: string): ReadonlyArray<string> => {
    const tags = names === undefined || isExpression(pattern) ? [] : tagsOf(pattern, names)
    return tags.length === 0 ? [pattern] : tags
  }
  return {
    retryableExceptions: retry.retryableExceptions.flatMap(translate),
    nonRetryableExceptions: retry.nonRetryableExceptions.flatMap(translate),
    skipToTierMapping: new Map(
      Object.entries(retry.skipToTierMapping).flatMap(([pattern, tier]) =>
        translate(pattern).map((each) => [each, tier] as const)
      )
    )
  }
}
