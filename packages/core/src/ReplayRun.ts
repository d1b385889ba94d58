/**
 * Runs of plans over dead letters: made, applied, watched and ended by operators, from any process of the binding.
 *
 * ```ts
 * import { EventBusConnector } from "@eventbus/core"
 * import { Effect } from "effect"
 *
 * export const repair = Effect.gen(function* () {
 *   const connector = yield* EventBusConnector.EventBusConnector
 *   const runs = yield* connector.runs("orders")
 *   const plan = yield* runs.plan({ action: "replay", select: { all: true }, reason: "the gateway is back" })
 *   yield* Effect.log(`${plan.count} letters`, plan.targets, plan.refusals)
 *   return yield* runs.apply(plan.id)
 * })
 * ```
 */
import type * as Deferred from "effect/Deferred"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { BrokerError } from "./BrokerError.ts"
import type { InvalidArgument, ReplayError, UnknownTier } from "./Replay.ts"
import type { Plan, PlanRefused, PlanRequest, PlanStale, UnknownPlan } from "./ReplayPlan.ts"

/**
 * `running`: a process works on it, or was ended while it did, as `abandonedSinceMillis` says: then `resume` goes on. `paused`: by an operator. `stopped`: by itself, for too many returns or an open circuit
 * breaker. `cancelled`: by an operator, for good. `done`: it has come to its end.
 */
export const RunState = Schema.Literals(["running", "paused", "stopped", "cancelled", "done"])
export type RunState = typeof RunState.Type

/** A run, as the journal has it. */
export interface RunSummary extends Pick<Plan, "id" | "action" | "tier" | "transform" | "reason" | "by"> {
  /** Its state. A pause and a cancellation show at once, though the copies of a transaction that has begun may be on their way. */
  readonly state: RunState
  /** Why it is in this state, where somebody or something gave a reason; for a run that nobody works on, since when, and what to do. */
  readonly stateReason: string | undefined
  /**
   * Since when no process works on a run that is `running`, epoch milliseconds: its process has left it, or was killed and its lease of 15 seconds is over by the clock of this
   * process. `resume` goes on with it. Undefined while a process works on it, and in every other state.
   */
  readonly abandonedSinceMillis: number | undefined
  /** How many letters the plan has. */
  readonly count: number
  /** Letters that are dealt with: copied, given up by `discard`, or brought back by `restore`. */
  readonly dealtWith: number
  /** Letters that the run came to and left, because their copies were refused or could not be made. As the process that worked last counted them. */
  readonly refused: number
  /** Why, and how many for each reason: at most 20 reasons, all further ones as `other`. */
  readonly refusals: ReadonlyMap<string, number>
  /** Most copies a second, as last set. */
  readonly rate: number
  /** When it began, epoch milliseconds by the clock of the process that applied the plan. */
  readonly startedAtMillis: number
  /** When the journal heard of it last, epoch milliseconds. */
  readonly updatedAtMillis: number
  /** The host of the process that worked on it last. */
  readonly host: string
  /** The id of that process on its host. */
  readonly pid: number
}

/**
 * The outcome of a run by now. Each copy is in one of the counts. A copy that loses all its headers for want of room before it is dead-lettered again, and one that another
 * topic takes (`topicFor`), counts as passed.
 */
export interface Receipt extends RunSummary {
  /** Copies that the group has committed past, in the main topic and all tiers, and that did not come back. */
  readonly passed: number
  /** Copies that were dead-lettered again: letters in the dead letter topic that carry the id of the run. */
  readonly cameBack: number
  /**
   * Copies that the group has not come to, or that wait in a retry tier. While an open transaction of some producer hides the end of the dead letter topic or of a tier, nobody
   * knows whether a copy has passed: all of those wait, too.
   */
  readonly waiting: number
  /** Copies that the group has committed past, and that may have come back: letters were removed from the dead letter topic before any process had read them, or cannot be read. Absent when there are none. */
  readonly unknown?: number
  /** Copies in topics that the binding does not read (`origins`): it does not know their fate. */
  readonly elsewhere: number
  /** Whether the run is over and no copy waits: its counts stay what they are, also after a purge. */
  readonly closed: boolean
}

/** Options of the commands that work on a run. */
export interface WorkOptions {
  /** Succeeds once the journal has the beginning of the work: from then on every process sees that the run works. */
  readonly begun?: Deferred.Deferred<void>
}

/**
 * Plans and runs of one binding, on its cluster, in whatever state the binding is. A run takes the lease of replays, so runs, replays and discards of one topic and group wait
 * for each other, 20 seconds at most, and fail with `ReplayRunning` then. An id, a number or a name that no command takes fails with `InvalidArgument`, and nothing is done.
 */
export interface Runs {
  /**
   * Plans and runs over the dead letters of one of the binding's topics. Fails with `InvalidArgument` for a topic that the binding does not read. A binding of several topics needs
   * it for `plan`, which fails with `InvalidArgument` else; for the other commands the id of the plan or run finds its topic.
   */
  readonly ofTopic: (topic: string) => Effect.Effect<Runs, InvalidArgument>
  /** Makes a plan, and keeps it in the journal. Nothing else changes. */
  readonly plan: (request: PlanRequest) => Effect.Effect<Plan, BrokerError | InvalidArgument | UnknownTier>
  /** A plan of whatever process. */
  readonly getPlan: (id: string) => Effect.Effect<Plan, BrokerError | InvalidArgument | UnknownPlan>
  /**
   * Applies a plan: works on its run until that is done, paused, stopped or cancelled, and answers the receipt of that moment. The run has the id of the plan. An
   * interruption leaves the run to `resume`, in this process or another one.
   */
  readonly apply: (
    planId: string,
    options?: WorkOptions
  ) => Effect.Effect<Receipt, BrokerError | ReplayError | InvalidArgument | PlanRefused>
  /**
   * Goes on with a run that was paused, that stopped itself, or whose process is gone, as `apply` does. Returns count anew from here. Fails with `PlanStale` when the topic was
   * made again, or when the binding of this process has other topics, or has no transform of the plan's name; and at once with `RunAtWork` while a process works on it, or was
   * killed and its lease of 15 seconds is not over.
   */
  readonly resume: (
    runId: string,
    options?: WorkOptions
  ) => Effect.Effect<
    Receipt,
    BrokerError | ReplayError | InvalidArgument | UnknownRun | RunOver | RunAtWork | PlanStale
  >
  /**
   * Pauses a run, and says why. The process that works on it ends its work within 5 seconds, and gives its lease back. A run that is paused or stopped stays as it is, with the
   * reason that it has.
   */
  readonly pause: RunCommand
  /** Ends a run for good, and says why. Copies that are published stay, and the other letters stay as they are. */
  readonly cancel: RunCommand
  /** Sets the rate of a run: most copies a second, a whole number, 1 to 100 000. */
  readonly setRate: (
    runId: string,
    rate: number
  ) => Effect.Effect<void, BrokerError | InvalidArgument | UnknownRun | RunOver>
  /** The outcome of a run by now. Reads without a group. */
  readonly receipt: (runId: string) => Effect.Effect<Receipt, BrokerError | InvalidArgument | UnknownRun>
  /** All runs, the newest first. */
  readonly list: Effect.Effect<ReadonlyArray<RunSummary>, BrokerError>
}

/** A command about a run, with its reason, which is not empty. */
export type RunCommand = (
  runId: string,
  reason: string
) => Effect.Effect<void, BrokerError | InvalidArgument | UnknownRun | RunOver>

/** The journal knows no run of this id for this binding: its plan was not applied, or there is none. */
export class UnknownRun extends Schema.TaggedError<UnknownRun>()("UnknownRun", {
  /** The id that was asked for. */
  id: Schema.String,
  /** The dead letter topic. */
  topic: Schema.String
}) {
  override get message(): string {
    return `There is no run ${this.id} over the dead letters of '${this.topic}'. Nothing was done.`
  }
}

/** The run is done or cancelled. Nothing was done. */
export class RunOver extends Schema.TaggedError<RunOver>()("RunOver", {
  /** The id of the run. */
  id: Schema.String,
  /** Its state, `done` or `cancelled`. */
  state: RunState
}) {
  override get message(): string {
    return `Nothing was done: run ${this.id} is ${this.state}.`
  }
}

/** A process works on the run already. Nothing was done. */
export class RunAtWork extends Schema.TaggedError<RunAtWork>()("RunAtWork", {
  /** The id of the run. */
  id: Schema.String,
  /** The host of the process. */
  host: Schema.String,
  /** The id of the process on its host. */
  pid: Schema.Number
}) {
  override get message(): string {
    return `Nothing was done: process ${this.pid} on host '${this.host}' works on run ${this.id}. If that process was killed, the run can be resumed within 15 seconds, once its lease is over.`
  }
}
