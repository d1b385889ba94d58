/** Checks of settings. All problems are reported at once, each with the value found and the values allowed. */
import { Kinds, Ranges } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { InvalidOutboxConfig } from "../../OutboxError.ts"
import { shapes } from "./optionKinds.ts"

type Issues = InvalidOutboxConfig["issues"]
type Table = Readonly<Record<string, Kinds.Kind | Ranges.Range>>

/** A number or a duration within its range. An absent value is refused: the caller applies the default first. */
export const within = (path: string, found: unknown, range: Ranges.Range): Issues =>
  Ranges.problems(path, found ?? null, range)

/** The problems of options by their names; those of `required` may not be absent. An option that is undefined is absent. Never throws. */
export const problemsOf = (options: unknown, optional: Table, required: Table = {}): Issues => {
  const whole = Ranges.problemsOfAll(options, {})
  if (whole.length > 0) return whole
  return [...Kinds.problemsOfRequired(options as object, required), ...Ranges.problemsOfAll(options, optional)]
}

/** The options over the defaults. An option that is undefined is absent. */
export const withDefaults = <Defaults extends object, Options extends object>(
  defaults: Defaults,
  options: Options
): Defaults & Options => ({
  ...defaults,
  ...(Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options)
})

/** Fails with every problem of the component's settings. */
export const checkOptions = (
  component: string,
  issues: ReadonlyArray<Issues>
): Effect.Effect<void, InvalidOutboxConfig> => Effect.suspend(() => refusal(component, issues.flat()) ?? Effect.void)

/** Checks the options of a shape, all but those that its parts check. A name that the shape does not know is refused, too. */
export const checkShape = (shape: keyof typeof shapes, options: unknown): Effect.Effect<void, InvalidOutboxConfig> =>
  Effect.suspend(() => {
    const kinds: Table = shapes[shape]
    const known = problemsOf(options, kinds)
    const allowed = shape === "ordered" ? "nothing: fixed in this mode" : "nothing: no option has this name"
    const unknown = namesOf(options).filter((name) => !Object.hasOwn(kinds, name))
    const strange = unknown.map((path) => ({ path, found: "a value", allowed }))
    return checkOptions(`Outbox.${shape}`, [known, strange])
  })

/** Throws every problem of the component's settings, for functions that are no effects. */
export const refuse = (component: string, ...issues: ReadonlyArray<Issues>): void => {
  const error = refusal(component, issues.flat())
  if (error !== undefined) throw error
}

const refusal = (component: string, issues: Issues): InvalidOutboxConfig | undefined =>
  issues.length === 0 ? undefined : new InvalidOutboxConfig({ component, issues })

const namesOf = (options: unknown): ReadonlyArray<string> => {
  try {
    return typeof options === "object" && options !== null ? Object.keys(options) : []
  } catch {
    // A Proxy whose traps throw: each of its options is refused already.
    return []
  }
}
