/** Checks of settings. All problems are reported at once, each with the value found and the values allowed. */
import { Duration, Effect } from "effect"
import { InvalidOutboxConfig } from "../../OutboxError.ts"

/** One checked setting. */
interface Check {
  readonly path: string
  readonly found: unknown
  readonly ok: boolean
  readonly allowed: string
}

/** A whole number within bounds. Infinity is refused: queues and batches are bounded. */
export const whole = (path: string, found: number, min: number, max: number): Check => ({
  path,
  found,
  ok: Number.isSafeInteger(found) && found >= min && found <= max,
  allowed: `a whole number from ${min} to ${max}`
})

/** A finite duration above 0. */
export const positive = (path: string, found: Duration.Input): Check => {
  const duration = Duration.fromInput(found)
  const millis = duration._tag === "Some" ? Duration.toMillis(duration.value) : Number.NaN
  return { path, found, ok: Number.isFinite(millis) && millis > 0, allowed: "a finite duration above 0" }
}

/** Text of 1 to `maxLength` characters. */
export const text = (path: string, found: string, maxLength: number): Check => ({
  path,
  found,
  ok: found.length > 0 && found.length <= maxLength,
  allowed: `1 to ${maxLength} characters`
})

/** Fails with every check that did not pass. */
export const checkOptions = (
  component: string,
  checks: ReadonlyArray<Check>
): Effect.Effect<void, InvalidOutboxConfig> => {
  const issues = checks
    .filter((c) => !c.ok)
    .map(({ path, found, allowed }) => ({ path, found: String(found), allowed }))
  return issues.length === 0 ? Effect.void : Effect.fail(new InvalidOutboxConfig({ component, issues }))
}
