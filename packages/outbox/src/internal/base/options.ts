/** Checks of settings. All problems are reported at once, each with the value found and the values allowed. */
import { Ranges } from "@eventbus/core"
import { Effect } from "effect"
import { InvalidOutboxConfig } from "../../OutboxError.ts"

type Issues = InvalidOutboxConfig["issues"]

/** A number or a duration within its range. An absent value is refused: the caller applies the default first. */
export const within = (path: string, found: unknown, range: Ranges.Range): Issues =>
  Ranges.problems(path, found ?? null, range)

/** Text of 1 to `maxLength` characters. */
export const text = (path: string, found: unknown, maxLength: number): Issues =>
  typeof found === "string" && found.length > 0 && found.length <= maxLength
    ? []
    : [{ path, found: String(found), allowed: `1 to ${maxLength} characters` }]

/** Fails with every problem of the component's settings. */
export const checkOptions = (
  component: string,
  issues: ReadonlyArray<Issues>
): Effect.Effect<void, InvalidOutboxConfig> => Effect.suspend(() => refusal(component, issues.flat()) ?? Effect.void)

/** Throws every problem of the component's settings, for functions that are no effects. */
export const refuse = (component: string, ...issues: ReadonlyArray<Issues>): void => {
  const error = refusal(component, issues.flat())
  if (error !== undefined) throw error
}

const refusal = (component: string, issues: Issues): InvalidOutboxConfig | undefined =>
  issues.length === 0 ? undefined : new InvalidOutboxConfig({ component, issues })
