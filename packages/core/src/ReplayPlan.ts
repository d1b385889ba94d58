/**
 * Plans: what a command would do with dead letters, before it does it. A plan freezes its selection, says how many letters go where and which would be refused, and is applied
 * once, by any process, within 15 minutes. `ReplayRun` has the commands.
 */
import * as Schema from "effect/Schema"
import type { DeadLetterSelection, Position } from "./DeadLetterSelection.ts"
import type { Time } from "./Time.ts"

/** A request: which dead letters, for what, and how carefully. */
export interface PlanRequest {
  /**
   * `replay`: to where they came from. `toTier`: to the retry topic of `tier`. `discard`: they are given up, stay in the topic, and no replay takes them any more. `restore`:
   * letters that were given up wait again, and every replay by command takes them.
   */
  readonly action: "replay" | "toTier" | "discard" | "restore"
  /** The retry tier, from 1. For `toTier` only, which needs it, and refused with `orderingMode: "PER_KEY"`. */
  readonly tier?: number
  /** Which dead letters. Only those that wait are taken, or that were given up for `restore`, and only those that lie in the topic now. */
  readonly select: DeadLetterSelection
  /** The name of a function of the binding (`transforms`) that repairs each letter. For copies only. Default: copies have the bytes of their letters. */
  readonly transform?: string
  /** Most copies a second: a whole number, 1 to 100 000. For copies only. Default 50. */
  readonly rate?: number
  /** How many copies come first and alone: the others wait for their fate. A whole number, 0 (none) to 1 000 000. For copies only. Default 20. */
  readonly canary?: number
  /**
   * How long the others wait for the fate of the canary, when not all of it is decided before. The run stops itself when none of it is decided by then, unless `stopAbove` is
   * 100. 0 to 2^31 - 1 ms. For copies only. Default 60 seconds.
   */
  readonly canaryWait?: Time
  /**
   * The run stops itself when more than this share of the decided copies came back, in percent: 0 to 100, where 100 never stops. It is judged after the canary, and from 20
   * decided copies on. For copies only. Default 5.
   */
  readonly stopAbove?: number
  /** True also takes letters that were replayed `maxReplays` times already. Default false: they stay. For copies only: `discard` takes them always. */
  readonly ignoreMaxReplays?: boolean
  /** Why. Not empty; it is kept with the run. */
  readonly reason: string
  /** The one who asks, as text for the record. Default: the name of this host. */
  readonly by?: string
}

/**
 * All issues of a request, whatever value it is; empty when `plan` takes it, except that only a binding knows how many tiers it has. The paths of issues of the selection begin
 * with `selection`. `transforms`: the names of the binding's transforms; without them, every name is taken.
 */
export { issues } from "./internal/runs/requestIssues.ts"

/** A plan, and its preview. */
export interface Plan extends Required<Pick<PlanRequest, "action" | "select" | "ignoreMaxReplays" | "reason" | "by">> {
  /** Names the plan, and the run that applies it: a UUID. */
  readonly id: string
  /** The retry tier; undefined unless the action is `toTier`. */
  readonly tier: number | undefined
  /** The function that repairs the letters; undefined when copies have the bytes of their letters. */
  readonly transform: string | undefined
  /** Most copies a second. */
  readonly rate: number
  /** How many copies come first and alone. */
  readonly canary: number
  /** The longest wait for the fate of the canary, in milliseconds. */
  readonly canaryWaitMillis: number
  /** The share of returns above which the run stops itself, in percent. */
  readonly stopAbove: number
  /** How many letters the run takes. */
  readonly count: number
  /** The first of them, at most 20. */
  readonly sample: ReadonlyArray<Position>
  /** How many copies go to each topic. Empty where nothing is published. */
  readonly targets: ReadonlyMap<string, number>
  /** Letters of the selection that stay because they cannot be published, by reason: at most 20 reasons, all further ones as `other`. */
  readonly refusals: ReadonlyMap<string, number>
  /** Letters of the selection that stay because they were replayed `maxReplays` times. */
  readonly passedOver: number
  /** Offsets of batches that cannot be read: nobody knows whether the selection takes their records. They stay. */
  readonly unreadable: number
  /** The end of each partition of the dead letter topic when the plan was made: no later letter is taken. */
  readonly ends: ReadonlyArray<Position>
  /** When it was made, epoch milliseconds by the clock of its process. */
  readonly createdAtMillis: number
  /** When it expires, 15 minutes later. The cluster's clock decides where the journal has it. */
  readonly expiresAtMillis: number
}

/** The journal knows no plan of this id for this binding. Plans that nobody applied are forgotten a day later. */
export class UnknownPlan extends Schema.TaggedError<UnknownPlan>()("UnknownPlan", {
  /** The id that was asked for. */
  id: Schema.String,
  /** The dead letter topic. */
  topic: Schema.String
}) {
  override get message(): string {
    return `There is no plan ${this.id} for the dead letters of '${this.topic}'. Nothing was done.`
  }
}

/** The plan is older than 15 minutes. Nothing was done. */
export class PlanExpired extends Schema.TaggedError<PlanExpired>()("PlanExpired", {
  /** The id of the plan. */
  id: Schema.String,
  /** How long ago it was made, in milliseconds. */
  ageMillis: Schema.Number
}) {
  override get message(): string {
    return `Nothing was done: plan ${this.id} was made ${Math.round(this.ageMillis / 60_000)} minutes ago and has expired. Make a new one.`
  }
}

/** The plan was applied already: a plan makes one run, which has its id. Nothing was done. */
export class PlanApplied extends Schema.TaggedError<PlanApplied>()("PlanApplied", {
  /** The id of the plan, and of its run. */
  id: Schema.String,
  /** The host of the process that applied it. */
  host: Schema.String,
  /** The id of that process on its host. */
  pid: Schema.Number
}) {
  override get message(): string {
    return `Nothing was done: plan ${this.id} was applied by process ${this.pid} on host '${this.host}'. Its run has the same id: read its receipt, or resume it.`
  }
}

/** The plan no longer says what would happen. Nothing was done. */
export class PlanStale extends Schema.TaggedError<PlanStale>()("PlanStale", {
  /** The id of the plan. */
  id: Schema.String,
  /** Everything that has changed since it was made, in words. */
  changes: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `Nothing was done: since plan ${this.id} was made, ${this.changes.join("; ")}. Make a new one.`
  }
}

/** Why a plan is not applied. */
export type PlanRefused = UnknownPlan | PlanExpired | PlanApplied | PlanStale
