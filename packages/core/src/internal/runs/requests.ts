/**
 * Checks everything that operators give to the commands of runs, before the cluster is asked. The first thing that no command takes is refused, by path.
 */
import * as Effect from "effect/Effect"
import * as Defaults from "../../Defaults.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import * as Ranges from "../../Ranges.ts"
import { InvalidArgument, UnknownTier } from "../../Replay.ts"
import type { Plan, PlanRequest } from "../../ReplayPlan.ts"
import { toMillis } from "../base/durations.ts"
import { shown } from "../base/shown.ts"
import * as RunMark from "../record/runMark.ts"
import * as PerKeyReplays from "../replay/perKeyReplays.ts"
import * as RequestIssues from "./requestIssues.ts"
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
  { tiers, transforms, hostname, ordersKeys }: Pick<Options, "tiers" | "transforms" | "hostname" | "ordersKeys">,
  asked: PlanRequest
): Effect.fn.Return<Request, InvalidArgument | UnknownTier> {
  const given = RequestIssues.taken(asked)
  const [issue] = RequestIssues.issues(given, Array.from(transforms.keys()))
  if (issue !== undefined) return yield* refused("plan", issue)
  const { action, tier, select, transform, reason, by = hostname } = given
  const { ignoreMaxReplays = !RequestIssues.makesCopies(action) } = given
  if (tier !== undefined && ordersKeys === true)
    return yield* refused("plan", { path: "tier", found: shown(tier), allowed: PerKeyReplays.allowed })
  if (tier !== undefined && tier > tiers.count) return yield* new UnknownTier({ tier, tiers: tiers.count })
  const { rate = Defaults.run.rate, stopAbove = Defaults.run.stopAbove } = given
  const canary = given.canary ?? (RequestIssues.makesCopies(action) ? Defaults.run.canary : 0)
  const { canaryWait = Defaults.run.canaryWaitMillis } = given
  return {
    ...{ action, tier, select, transform, rate, canary, stopAbove, ignoreMaxReplays, reason, by },
    canaryWaitMillis: toMillis(canaryWait)
  }
})
