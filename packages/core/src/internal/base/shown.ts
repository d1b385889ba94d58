/** How messages show a value that was found. */
import * as Duration from "effect/Duration"

/** Longest text that a message quotes, in characters: room for a topic name that is too long because something was derived from it. */
export const longestQuote = 300

/** A text in quotes, or its length where that is longer than `longestQuote`; a duration with its units, an object as JSON. Never throws. */
export const shown = (found: unknown): string => {
  if (typeof found === "string")
    return found.length > longestQuote ? `a text of ${found.length} characters` : `'${found}'`
  if (typeof found === "function") return "a function"
  if (typeof found !== "object" || found === null) return String(found)
  try {
    return Duration.isDuration(found) ? Duration.format(found) : (JSON.stringify(found) ?? "an object")
  } catch {
    return "an object"
  }
}
