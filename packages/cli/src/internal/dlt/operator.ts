/**
 * The operations on the dead letters of one binding, straight on its cluster (`directOperator.ts`) or by the admin API of a running process (`remoteOperator.ts`). Both answer
 * what the API answers, so that every command prints the same.
 */
import type * as Answers from "@eventbus/admin/Answers"
import type * as DeadLetterAnswers from "@eventbus/admin/DeadLetterAnswers"
import type * as RunAnswers from "@eventbus/admin/RunAnswers"
import type { DeadLetterGroup, DeadLetterList, DeadLetterSelection, Rehearsal, ReplayPlan } from "@eventbus/core"
import type * as Deferred from "effect/Deferred"
import type * as Effect from "effect/Effect"
import { CommandFailed, exitCodes } from "../failures.ts"

/** A failure that is written for people, of the connector, of its admin API, or of the way there. */
export interface Failed {
  readonly _tag: string
  readonly message: string
}

type Answer<A> = Effect.Effect<A, Failed>

export interface Operator {
  readonly groups: (states?: ReadonlyArray<DeadLetterGroup.GroupState>) => Answer<DeadLetterAnswers.Groups>
  readonly page: (query: DeadLetterList.Query) => Answer<DeadLetterAnswers.Page>
  /** Undefined when there is none at the position. */
  readonly letter: (position: DeadLetterSelection.Position) => Answer<DeadLetterAnswers.Letter | undefined>
  readonly rehearse: (
    selection: DeadLetterSelection.DeadLetterSelection,
    options: Pick<Rehearsal.Options, "transform">
  ) => Answer<DeadLetterAnswers.RehearsalReport>
  /** Calls a transform for the letters at these positions, 20 at most, and publishes nothing. */
  readonly transformed: (
    positions: ReadonlyArray<DeadLetterSelection.Position>,
    transform: string
  ) => Answer<ReadonlyArray<DeadLetterAnswers.Transformed>>
  readonly purge: (beforeMillis: number) => Answer<Answers.PurgeReport>
  readonly plan: (request: ReplayPlan.PlanRequest) => Answer<RunAnswers.Plan>
  readonly getPlan: (id: string) => Answer<RunAnswers.Plan>
  /** Begins or goes on with a run, and answers when nobody works on it any more. `begun` succeeds once the work has begun. */
  readonly work: (verb: "apply" | "resume", id: string, begun: Deferred.Deferred<void>) => Answer<RunAnswers.Receipt>
  readonly runs: Answer<RunAnswers.Runs>
  readonly receipt: (id: string) => Answer<RunAnswers.Receipt>
  readonly halt: (verb: "pause" | "cancel", id: string, reason: string) => Answer<RunAnswers.Receipt>
  readonly setRate: (id: string, rate: number) => Answer<RunAnswers.Receipt>
}

const wrongUsage: ReadonlySet<string> = new Set(["InvalidArgument", "UnknownTier", "InvalidRequest"])

/** The cluster or the process has answered, and the answer is no. */
const noes: ReadonlySet<string> = new Set([
  ...["DryRunLayerFailed", "ConfigurationValidation", "ReplayRunning", "ReplayTakenOver", "RehearsalRunning"],
  ...["UnknownPlan", "PlanExpired", "PlanApplied", "PlanStale", "UnknownRun", "RunOver", "RunAtWork"],
  ...["NotPurgeable", "ForeignDeadLetters", "BindingNotFound", "AmbiguousBinding", "InvalidContainerState"],
  ...["Unauthorized", "Forbidden", "ReadOnly", "LoopbackOnly", "FleetNotConfigured", "UnfitTopic", "AuditOff"],
  ...["RecordNotHeld", "KeyNotHeld", "StrandedKeysChanged", "NotOrderedPerKey", "NotRunHere", "RehearsalNotFound"]
])

/** A failure with its exit code. */
export const toFailed = (error: Failed): CommandFailed => {
  if (error instanceof CommandFailed) return error
  const { _tag, message } = error
  const code = wrongUsage.has(_tag) ? exitCodes.usage : noes.has(_tag) ? exitCodes.refused : exitCodes.unavailable
  return new CommandFailed({ message, code })
}
