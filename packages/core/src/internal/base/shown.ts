/** How messages show a value that was found. */
import { Duration } from "effect"

/** A text in quotes, a duration with its units, an object as JSON. Never throws. */
export const shown = (found: unknown): string => {
  if (typeof found === "string") return `'${found}'`
  if (typeof found === "function") return "a function"
  if (typeof found !== "object" || found === null) return String(found)
  try {
    return Duration.isDuration(found) ? Duration.format(found) : (JSON.stringify(found) ?? "an object")
  } catch {
    return "an object"
  }
}
