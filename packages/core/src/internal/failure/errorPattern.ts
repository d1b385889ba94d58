/**
 * How a list in a configuration names an error: by class name or by a regular expression on the message.
 */
import type { ErrorSummary } from "./failure.ts"

/**
 * - `ClassName` matches the name of an error's class or its `_tag`; `simpleName` is what is behind the last dot of a qualified name such as
 *   `java.net.SocketTimeoutException`. When only one of pattern and error is qualified, their simple names decide.
 * - `Message` matches an error whose message has a place that fits.
 * - `Invalid` matches nothing; validation reports it.
 */
export type ErrorPattern =
  | { readonly _tag: "ClassName"; readonly name: string; readonly simpleName: string }
  | { readonly _tag: "Message"; readonly regexp: RegExp }
  | { readonly _tag: "Invalid"; readonly allowed: string }

/** How much of a message an expression sees: one that goes back and forth over its input takes the square of that, or its cube. */
const maxMessageLength = 1024

/** Text between slashes is an expression, with its flags behind it. */
const expression = /^\/(.+)\/([a-z]*)$/s

/** Reads a pattern; a wrong one, from plain JavaScript too, is `Invalid`. */
export const parse = (pattern: unknown): ErrorPattern => {
  if (pattern instanceof RegExp) return message(pattern.source, pattern.flags)
  if (typeof pattern !== "string") return { _tag: "Invalid", allowed: "a class name or a regular expression" }
  const name = pattern.trim()
  if (!name.startsWith("/")) return className(name)
  const [, source, flags] = expression.exec(name) ?? []
  return source === undefined || flags === undefined
    ? { _tag: "Invalid", allowed: "a regular expression between two slashes, such as /timed? out/i" }
    : message(source, flags)
}

export const matches = (pattern: ErrorPattern, { className, message }: ErrorSummary): boolean => {
  switch (pattern._tag) {
    case "ClassName":
      return className === pattern.name || className === pattern.simpleName || simpleNameOf(className) === pattern.name
    case "Message":
      // Flags g and y leave their place behind, for the next message.
      pattern.regexp.lastIndex = 0
      return pattern.regexp.test(message.slice(0, maxMessageLength))
    case "Invalid":
      return false
  }
}

/** Equal for two patterns that match the same errors: the simple name, or the expression. Undefined for an invalid one. */
export const identity = (pattern: ErrorPattern): string | undefined => {
  switch (pattern._tag) {
    case "ClassName":
      return pattern.simpleName
    case "Message":
      return String(pattern.regexp)
    case "Invalid":
      return undefined
  }
}

const className = (name: string): ErrorPattern => {
  const simpleName = simpleNameOf(name)
  return simpleName === ""
    ? { _tag: "Invalid", allowed: "a class name that is not empty, such as SocketTimeoutException" }
    : { _tag: "ClassName", name, simpleName }
}

const simpleNameOf = (name: string): string => name.slice(name.lastIndexOf(".") + 1)

/** A copy of an expression, whose `lastIndex` is nobody else's. */
const message = (source: string, flags: string): ErrorPattern => {
  try {
    return { _tag: "Message", regexp: new RegExp(source, flags) }
  } catch (error) {
    const reason = error instanceof Error ? ` (${error.message})` : ""
    return { _tag: "Invalid", allowed: `a valid regular expression${reason}` }
  }
}
