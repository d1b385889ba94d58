/**
 * Texts of failures: for the table, for logs and for health. Nothing here throws, however hostile the thrown value is: a getter that
 * throws, a message that is a Symbol, a revoked Proxy, a cyclic cause (rulings 16 and 86).
 */
import { Failure } from "@eventbus/core"
import * as Cause from "effect/Cause"

/** A failure in text. */
export interface FailureText {
  /** `ClassName: message`, or the thrown text itself, and then `, caused by …` for each cause. Never empty. */
  readonly summary: string
  /** The `_tag` of a tagged error, or undefined. */
  readonly tag: string | undefined
  /** The stack trace of an error; empty when there is none. */
  readonly stack: string
}

/** The text of a cause: of its first typed error, or else of its first defect. */
export const failureOf = (cause: Cause.Cause<unknown>): FailureText => {
  const failed = cause.reasons.find(Cause.isFailReason)
  if (failed !== undefined) return failureOfValue(failed.error)
  const died = cause.reasons.find(Cause.isDieReason)
  if (died !== undefined) return failureOfValue(died.defect)
  const text = cause.reasons.length > 0 ? "interrupted" : "failed without a reason"
  return { summary: text, tag: undefined, stack: "" }
}

/** The text of any thrown value. */
export const failureOfValue = (error: unknown): FailureText => {
  const tag = textProperty(error, "_tag")
  return { summary: withCauses(summaryOf(error, tag), error), tag, stack: textProperty(error, "stack") ?? "" }
}

const mostCauses = 10
const longestCause = 1_024

/** `Effect.tryPromise` fails with an error that says nothing: what happened is in its cause. */
const withCauses = (summary: string, error: unknown): string => {
  const seen = new Set<unknown>([error])
  let text = summary
  for (
    let cause = property(error, "cause");
    cause !== undefined && cause !== null && !seen.has(cause) && seen.size <= mostCauses;
    cause = property(cause, "cause")
  ) {
    seen.add(cause)
    text += `, caused by ${summaryOf(cause, textProperty(cause, "_tag")).slice(0, longestCause)}`
  }
  return text
}

/** A line for the log: the summary, and the stack trace below it where there is one. */
export const logText = (cause: Cause.Cause<unknown>): string => {
  const { summary, stack } = failureOf(cause)
  return stack === "" || stack.startsWith(summary) ? stack || summary : `${summary}\n${stack}`
}

const summaryOf = (error: unknown, tag: string | undefined): string => {
  if (!isObject(error)) return error === "" ? '""' : String(error)
  const name = textProperty(error, "name") ?? tag ?? textProperty(property(error, "constructor"), "name")
  const message = textProperty(error, "message")
  if (message !== undefined) return `${name ?? "Error"}: ${message}`
  const fields = Failure.fieldsText(error)
  if (name === undefined || name === "Object") return fields || "an object without a name"
  return fields === "" ? name : `${name}: ${fields}`
}

const isObject = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function"

const property = (value: unknown, key: string): unknown => {
  if (!isObject(value)) return undefined
  try {
    return Reflect.get(value, key)
  } catch {
    return undefined
  }
}

/** A property whose value is text that is not blank. */
export const textProperty = (value: unknown, key: string): string | undefined => {
  const text = property(value, key)
  return typeof text === "string" && text.trim() !== "" ? text : undefined
}
