/**
 * Checks everything that operators give to the commands of runs, before the cluster is asked. The first thing that no command takes is refused, by path.
 */
import { Duration, Effect } from "effect"
import * as Defaults from "../../Defaults.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import * as Kinds from "../../Kinds.ts"
import * as Ranges from "../../Ranges.ts"
import { InvalidArgument, UnknownTier } from "../../Replay.ts"
import type { Plan, PlanRequest } from "../../ReplayPlan.ts"
import { isObject, namesOf, read } from "../base/properties.ts"
import { shown } from "../base/shown.ts"
import * as RunMark from "../record/runMark.ts"
import * as Arguments from "../replay/arguments.ts"
import type { Options } from "./runOptions.ts"

/** A request with its defaults. */
export type Request = Pick<
  Plan,
  | "action"
  | "tier"
  | "select"
  | "transform"
  | "rate"
  | "canary"
  | "canaryWaitMillis"
  | "stopAbove"
  | "ignoreMaxReplays"
  | "reason"
  | "by"
>

const actions = ["replay", "toTier", "discard", "restore"]

/** Whether a plan publishes copies. */
export const makesCopies = (action: unknown): boolean => action !== "discard" && action !== "restore"

/** Settings that are about copies. */
const aboutCopies = ["transform", "rate", "canary", "canaryWait", "stopAbove", "ignoreMaxReplays"]
const known: ReadonlySet<string> = new Set([...aboutCopies, "action", "tier", "select", "reason", "by"])

const refused = (command: string, { path, found, allowed }: ConfigurationIssue) =>
  Effect.fail(new InvalidArgument({ command, argument: path, given: found, expected: allowed }))

/** The id of a plan or a run. */
export const id = (command: string, given: unknown): Effect.Effect<void, InvalidArgument> =>
  RunMark.isRunId(given)
    ? Effect.void
    : refused(command, {
        path: "id",
        found: shown(given),
        allowed: "the id of a plan or a run, a UUID in small letters"
      })

export const rate = (command: string, given: unknown): Effect.Effect<void, InvalidArgument> => {
  const [issue] = Ranges.problems("rate", given ?? null, Ranges.run.rate)
  return issue === undefined ? Effect.void : refused(command, issue)
}

/** A request, complete. */
export const plan = Effect.fnUntraced(function* (
  { tiers, transforms, hostname }: Pick<Options, "tiers" | "transforms" | "hostname">,
  asked: PlanRequest
): Effect.fn.Return<Request, InvalidArgument | UnknownTier> {
  const given = snapshotOf(asked)
  const [issue] = issuesOf(given, Array.from(transforms.keys()))
  if (issue !== undefined) return yield* refused("plan", issue)
  yield* Arguments.selection("plan", given.select)
  yield* Arguments.reason("plan", given.reason)
  const { action, tier, select, transform, reason, by = hostname, ignoreMaxReplays = !makesCopies(action) } = given
  yield* Arguments.text("plan", "by", by)
  if (tier !== undefined && !(Number.isInteger(tier) && tier >= 1 && tier <= tiers.count))
    return yield* new UnknownTier({ tier, tiers: tiers.count })
  const { rate = Defaults.run.rate, stopAbove = Defaults.run.stopAbove } = given
  const canary = given.canary ?? (makesCopies(action) ? Defaults.run.canary : 0)
  const { canaryWait = Defaults.run.canaryWaitMillis } = given
  return {
    ...{ action, tier, select, transform, rate, canary, stopAbove, ignoreMaxReplays, reason, by },
    canaryWaitMillis: Duration.toMillis(canaryWait)
  }
})

/** Each setting is read once: a getter may throw, or answer differently the next time. */
const snapshotOf = (given: PlanRequest): PlanRequest =>
  isObject(given)
    ? (Object.fromEntries(
        [...new Set([...known, ...namesOf(given)])]
          .map((name) => [name, read(given, name)])
          .filter(([, value]) => value !== undefined)
      ) as unknown as PlanRequest)
    : given

const issuesOf = (given: unknown, transforms: ReadonlyArray<string>): ReadonlyArray<ConfigurationIssue> => {
  if (!isObject(given))
    return [{ path: "request", found: shown(given), allowed: "an object with action, select and reason" }]
  const action = read(given, "action")
  const names = transforms.length === 0 ? "none: the binding has no transforms" : transforms.join(", ")
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
      transform: Kinds.make(names, (name) => typeof name === "string" && transforms.includes(name))
    })
  ]
}

const tierIssues = (action: unknown, tier: unknown): ReadonlyArray<ConfigurationIssue> => {
  if (action === "toTier")
    return typeof tier === "number"
      ? []
      : [{ path: "tier", found: shown(tier), allowed: "the number of a tier, from 1" }]
  return tier === undefined ? [] : [{ path: "tier", found: shown(tier), allowed: "nothing: only toTier has a tier" }]
}
