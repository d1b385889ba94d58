/** The selection of a plan, for the replay that looks for its letters and for the one that takes them. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Admin } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as DeadLetterSelection from "../../DeadLetterSelection.ts"
import type { Plan } from "../../ReplayPlan.ts"
import * as FailureHeaders from "../record/failureHeaders.ts"
import * as Restores from "../replay/replayRestores.ts"
import type { Selection } from "../replay/replayRun.ts"
import * as RequestIssues from "./requestIssues.ts"
import type { Options } from "./runOptions.ts"

type Chosen = Pick<Plan, "action" | "tier" | "select" | "ignoreMaxReplays" | "reason" | "by">

/** `ends` are those of the plan: a letter at or behind the end of its partition came later, and is not meant. */
export const selectionOf = Effect.fnUntraced(function* (
  options: Options,
  admin: Admin,
  { action, tier, select, ignoreMaxReplays, reason, by }: Chosen,
  ends: ReadonlyMap<number, bigint>
): Effect.fn.Return<Selection, BrokerError, Scope.Scope> {
  const { ownFingerprint } = options
  const matches = DeadLetterSelection.matches(select)
  return {
    count: Number.POSITIVE_INFINITY,
    inOrder: false,
    select: (letter) => {
      const { partition, offset } = letter.record
      if (offset >= (ends.get(partition) ?? 0n)) return "stop"
      return matches(FailureHeaders.regrouped(letter, ownFingerprint)) ? "take" : "leave"
    },
    concerns: ({ partition, offset }) => offset < (ends.get(partition) ?? 0n),
    ...(tier === undefined ? {} : { tier }),
    ...(action === "discard" ? { discardedBecause: reason, discardedBy: by } : {}),
    ...(action === "restore" ? { restores: { discarded: yield* Restores.load(options, admin), reason, by } } : {}),
    ...(ignoreMaxReplays ? { maxReplays: Number.POSITIVE_INFINITY } : {})
  }
})

/** The topics that the copies of a plan may go to. */
export const mayWriteTo = (
  { sourceTopic, origins = [], tiers, ordersKeys }: Pick<Options, "sourceTopic" | "origins" | "tiers" | "ordersKeys">,
  { action, tier }: Pick<Chosen, "action" | "tier">
): ReadonlyArray<string> => {
  if (!RequestIssues.makesCopies(action)) return []
  if (tier === undefined) return [sourceTopic, ...[...origins].sort()]
  // A plan may be older than the tiers and the order of today.
  return tier <= tiers.count && ordersKeys !== true ? [tiers.topicOf(tier).topic] : []
}
