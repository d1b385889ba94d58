/**
 * Durations that users write, as milliseconds.
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Time from "../../Time.ts"

/**
 * NaN for a value that is no duration, and for one beyond 2^53 - 1 ms, which cannot be added up exactly; validation reports it. Effect reads NaN, `{}` and an object
 * with a misspelled unit as zero, which would turn a mistake into no wait at all.
 */
export const toMillis = (input: unknown): number => {
  const millis = read(input)
  if (!(millis <= Number.MAX_SAFE_INTEGER)) return Number.NaN
  // Decimals such as `{ seconds: 1.1 }` miss a whole number of milliseconds by less than this.
  const rounded = Math.round(millis)
  return Math.abs(millis - rounded) < 1e-6 ? rounded : millis
}

/** Total: an object may throw when it is looked at. */
const read = (input: unknown): number => {
  try {
    if (!isDuration(input)) return Number.NaN
    const duration = Duration.fromInput(input)
    if (Option.isSome(duration)) return Duration.toMillis(duration.value)
    return typeof input === "string" ? Time.parse(input) : Number.NaN
  } catch {
    return Number.NaN
  }
}

const units: ReadonlySet<string> = new Set(
  "weeks days hours minutes seconds milliseconds microseconds nanoseconds".split(" ")
)

/** Whether Effect reads the value as what it says. */
const isDuration = (input: unknown): input is Duration.Input => {
  if (typeof input === "number") return !Number.isNaN(input)
  if (typeof input === "string" || typeof input === "bigint" || Duration.isDuration(input)) return true
  if (typeof input !== "object" || input === null) return false
  if (Array.isArray(input)) return input.length === 2 && input.every(Number.isFinite)
  const parts = Object.entries(input).filter(([, amount]) => amount !== undefined)
  return parts.length > 0 && parts.every(([unit, amount]) => units.has(unit) && Number.isFinite(amount))
}
