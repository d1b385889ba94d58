/**
 * Everything about a request for a plan that no command takes, whatever value it is. The cluster is not asked.
 */
import * as DeadLetterSelection from "../../DeadLetterSelection.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import * as Kinds from "../../Kinds.ts"
import * as Ranges from "../../Ranges.ts"
import * as Properties from "../base/properties.ts"
import { isObject, read } from "../base/properties.ts"
import { shown } from "../base/shown.ts"
import * as Arguments from "../replay/arguments.ts"

const actions = ["replay", "toTier", "discard", "restore"]

/** Whether a plan publishes copies. */
export const makesCopies = (action: unknown): boolean => action !== "discard" && action !== "restore"

/** Settings that are about copies. */
const aboutCopies = ["transform", "rate", "canary", "canaryWait", "stopAbove", "ignoreMaxReplays"]
const known: ReadonlySet<string> = new Set([...aboutCopies, "action", "tier", "select", "reason", "by"])

/** The request with each of its settings read once. */
export const taken = <A extends object>(given: A): A =>
  isObject(given) ? Properties.takenWhole(given, [...known]) : given

/** A text that says why somebody decides about records: it is kept, so there has to be one. */
const reason = Kinds.make("a text that says why", (value) => typeof value === "string" && value.trim() !== "")

/** All issues by path; those of the selection begin with `selection`. `transforms`: the names that the binding has; undefined where nobody knows them. */
export const issues = (given: unknown, transforms?: ReadonlyArray<string>): ReadonlyArray<ConfigurationIssue> => {
  if (!isObject(given))
    return [{ path: "request", found: shown(given), allowed: "an object with action, select and reason" }]
  const action = read(given, "action")
  return [
    ...Object.keys(given)
      .filter((name) => !known.has(name))
      .map((name) => ({ path: name, found: shown(read(given, name)), allowed: `one of ${[...known].join(", ")}` })),
    ...Kinds.oneOf(actions)("action", action),
    ...tierIssues(action, read(given, "tier")),
    ...aboutCopies
      .filter((name) => !makesCopies(action) && read(given, name) !== undefined)
      .map((name) => ({ path: name, found: shown(read(given, name)), allowed: `nothing: ${action} makes no copies` })),
    ...Ranges.problemsOfAll(given, {
      ...Ranges.run,
      ignoreMaxReplays: Kinds.flag,
      by: Kinds.name,
      transform: transformKind(transforms)
    }),
    ...DeadLetterSelection.issues(read(given, "select")).map(selectionIssue),
    ...reason("reason", read(given, "reason")),
    ...["reason", "by"].flatMap((name) => tooLong(name, read(given, name)))
  ]
}

const tooLong = (path: string, found: unknown): ReadonlyArray<ConfigurationIssue> =>
  typeof found === "string" && found.length > Arguments.longestText
    ? [{ path, found: `${found.length} characters`, allowed: `a text of at most ${Arguments.longestText} characters` }]
    : []

const selectionIssue = ({ path, given: found, expected: allowed }: DeadLetterSelection.Issue): ConfigurationIssue => ({
  path,
  found,
  allowed
})

/** The transforms that a binding has, for one who names another. */
export const transformNames = (transforms: ReadonlyArray<string>): string =>
  transforms.length === 0
    ? "none: in this process the binding has no transforms, which are functions in its code"
    : transforms.join(", ")

const transformKind = (transforms: ReadonlyArray<string> | undefined): Ranges.Kind => {
  if (transforms === undefined) return Kinds.name
  return Kinds.make(transformNames(transforms), (name) => typeof name === "string" && transforms.includes(name))
}

const tierIssues = (action: unknown, tier: unknown): ReadonlyArray<ConfigurationIssue> => {
  if (action === "toTier")
    return Number.isSafeInteger(tier) && Number(tier) >= 1
      ? []
      : [{ path: "tier", found: shown(tier), allowed: "the number of a tier, from 1" }]
  return tier === undefined ? [] : [{ path: "tier", found: shown(tier), allowed: "nothing: only toTier has a tier" }]
}
