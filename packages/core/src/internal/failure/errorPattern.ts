/**
 * The patterns by which the lists of a configuration name errors: a class name, or a regular expression on the message.
 */
import type { ErrorSummary } from "../../Failure.ts"

/**
 * - `ClassName` matches the class name of an error or its `_tag`. `simpleName` is the part after the last dot of a qualified name such as
 *   `java.net.SocketTimeoutException`. When only one of pattern and error is qualified, the simple names are compared.
 * - `Message` matches an error when the expression matches anywhere in its message.
 * - `Invalid` matches nothing. Validation reports it.
 */
export type ErrorPattern =
  | { readonly _tag: "ClassName"; readonly name: string; readonly simpleName: string }
  | { readonly _tag: "Message"; readonly regexp: RegExp }
  | { readonly _tag: "Invalid"; readonly allowed: string }

/** Characters of a message that an expression sees. A backtracking expression may take quadratic or cubic time in this length. */
const maxMessageLength = 1024

/** Text between slashes is an expression; its flags follow the second slash. */
const expression = /^\/(.+)\/([a-z]*)$/s

const kinds = "a class name or a regular expression"

/** Reads a pattern. A malformed pattern, also one from plain JavaScript, is `Invalid`. */
export const parse = (pattern: unknown): ErrorPattern => {
  if (typeof pattern === "object") return ofObject(pattern)
  if (typeof pattern !== "string") return { _tag: "Invalid", allowed: kinds }
  const name = pattern.trim()
  if (!name.startsWith("/")) return className(name)
  const [, source, flags] = expression.exec(name) ?? []
  return source === undefined || flags === undefined
    ? { _tag: "Invalid", allowed: "a regular expression between two slashes, such as /timed? out/i" }
    : message(source, flags)
}

/** A Proxy may throw when it is looked at. */
const ofObject = (pattern: object | null): ErrorPattern => {
  try {
    return pattern instanceof RegExp ? message(pattern.source, pattern.flags) : { _tag: "Invalid", allowed: kinds }
  } catch {
    return { _tag: "Invalid", allowed: kinds }
  }
}

export const matches = (pattern: ErrorPattern, { className, message }: ErrorSummary): boolean => {
  switch (pattern._tag) {
    case "ClassName":
      return className === pattern.name || className === pattern.simpleName || simpleNameOf(className) === pattern.name
    case "Message":
      // Flags g and y keep `lastIndex` between calls; each message is matched from its start.
      pattern.regexp.lastIndex = 0
      return pattern.regexp.test(message.slice(0, maxMessageLength))
    case "Invalid":
      return false
  }
}

/** Equal for two patterns that match the same errors: the simple name, or the expression. Undefined for an invalid pattern. */
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

/** Copies the expression, so that its `lastIndex` is not shared with the user's. */
const message = (source: string, flags: string): ErrorPattern => {
  try {
    return { _tag: "Message", regexp: new RegExp(source, flags) }
  } catch (error) {
    const reason = error instanceof Error ? ` (${error.message})` : ""
    return { _tag: "Invalid", allowed: `a valid regular expression${reason}` }
  }
}
