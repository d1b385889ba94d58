/**
 * The operations of an administrator on plans over dead letters and on their runs, which are a part of `EventBusAdmin`.
 *
 * ```ts
 * import { EventBusAdmin } from "@eventbus/admin"
 * import { Effect } from "effect"
 *
 * export const replayed = Effect.gen(function* () {
 *   const admin = yield* EventBusAdmin.EventBusAdmin
 *   const { id, count } = yield* admin.makePlan("orders", { action: "replay", select: { all: true }, reason: "the gateway is back" })
 *   if (count > 0) yield* admin.applyPlan("orders", id)
 *   return yield* admin.receipt("orders", id)
 * })
 * ```
 */
import type { BrokerError, EventBusConnector, Replay, ReplayPlan, ReplayRun } from "@eventbus/core"
import type * as Effect from "effect/Effect"
import type * as RunAnswers from "./RunAnswers.ts"

/** How much an answer about dead letters may have. */
export interface View {
  /** Whether it has what may quote a record: keys, values, headers, and the messages of errors. Default false. */
  readonly payload?: boolean
}

/** The failures that every operation on plans and runs has. */
export type RunsError = EventBusConnector.BindingLookupError | BrokerError.BrokerError | Replay.InvalidArgument

/** The failures of an operation on a run. */
export type RunError = RunsError | ReplayRun.UnknownRun

/** The failures of an operation on a run that is not over. */
export type RunCommandError = RunError | ReplayRun.RunOver

/** A command about a run, with its reason. Answers the receipt after it. */
export type RunCommand = (
  name: string,
  id: string,
  reason: string
) => Effect.Effect<RunAnswers.Receipt, RunCommandError>

/** The operations. A name is that of a binding, or `{cluster}:{binding}`. */
export interface AdminRuns {
  /** Makes a plan, and keeps it in the journal. Nothing else changes. */
  readonly makePlan: (
    name: string,
    request: ReplayPlan.PlanRequest,
    view?: View
  ) => Effect.Effect<RunAnswers.Plan, RunsError | Replay.UnknownTier>
  /** A plan of whatever process. */
  readonly getPlan: (
    name: string,
    id: string,
    view?: View
  ) => Effect.Effect<RunAnswers.Plan, RunsError | ReplayPlan.UnknownPlan>
  /** Applies a plan: answers once its run has begun. The run goes on in this process, until the service closes at the latest; then any process resumes it. */
  readonly applyPlan: (
    name: string,
    id: string
  ) => Effect.Effect<RunAnswers.Receipt, RunsError | Replay.ReplayError | ReplayPlan.PlanRefused>
  /** All runs, the newest first. */
  readonly runs: (name: string, view?: View) => Effect.Effect<RunAnswers.Runs, RunsError>
  /** A run, and the outcome of its copies by now. */
  readonly receipt: (name: string, id: string, view?: View) => Effect.Effect<RunAnswers.Receipt, RunError>
  /** Pauses a run, whichever process works on it. One that is paused or stopped stays as it is. */
  readonly pauseRun: RunCommand
  /** Ends a run for good. */
  readonly cancelRun: RunCommand
  /** Goes on with a run, as `applyPlan` does. Fails with `RunAtWork` while a process works on it. */
  readonly resumeRun: (
    name: string,
    id: string
  ) => Effect.Effect<
    RunAnswers.Receipt,
    RunCommandError | Replay.ReplayError | ReplayRun.RunAtWork | ReplayPlan.PlanStale
  >
  /** Sets the rate of a run: most copies a second. */
  readonly setRunRate: (name: string, id: string, rate: number) => Effect.Effect<RunAnswers.Receipt, RunCommandError>
}
