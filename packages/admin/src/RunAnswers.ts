/**
 * The answers of the admin API about plans over dead letters, their runs and receipts. Times are ISO-8601 texts in UTC. A position is `{partition}@{offset}` in the dead letter
 * topic.
 *
 * The parts that may quote a record (the keys of a selection, and the reasons of refusals in words) are there only for callers with the permission `view-payload`.
 */
import { ReplayRun } from "@eventbus/core"
import * as Schema from "effect/Schema"
import { Count } from "./Answers.ts"
import { Transformed } from "./DeadLetterAnswers.ts"

const optional = Schema.optionalKey

const action = Schema.Literals(["replay", "toTier", "discard", "restore"])

/** The selection of a plan, by the names that a request has. */
export const Selection = Schema.Struct({
  groups: optional(Schema.Array(Schema.String)),
  from: optional(Schema.String),
  to: optional(Schema.String),
  /** Only with `view-payload`. */
  keys: optional(Schema.Array(Schema.String)),
  /** How many keys it has. Absent when the selection is not by keys. */
  keyCount: optional(Schema.Int),
  records: optional(Schema.Array(Schema.String)),
  all: optional(Schema.Literal(true)),
  except: optional(Schema.Array(Schema.String))
})
export type Selection = typeof Selection.Type

/** A plan, and its preview. */
export const Plan = Schema.Struct({
  /** Names the plan, and the run that applies it. */
  id: Schema.String,
  action,
  tier: optional(Schema.Int),
  transform: optional(Schema.String),
  select: Selection,
  /** Most copies a second. */
  rate: Schema.Number,
  /** How many copies come first and alone. */
  canary: Schema.Number,
  canaryWaitMillis: Schema.Number,
  /** The share of returns above which the run stops itself, in percent. */
  stopAbove: Schema.Number,
  ignoreMaxReplays: Schema.Boolean,
  reason: Schema.String,
  /** The one who asked for it. */
  by: Schema.String,
  /** How many letters the run takes. */
  count: Schema.Int,
  /** The first of them, at most 20. */
  sample: Schema.Array(Schema.String),
  /** How many copies go to each topic. */
  targets: Schema.Array(Count),
  /** Letters that stay because they cannot be published. */
  refused: Schema.Int,
  /** Why. Only with `view-payload`. */
  refusals: optional(Schema.Array(Count)),
  /** Letters that stay because they were replayed too often. */
  passedOver: Schema.Int,
  /** Offsets of batches that cannot be read. */
  unreadable: Schema.Int,
  created: Schema.String,
  /** Nobody applies it from then on. */
  expires: Schema.String
})
export type Plan = typeof Plan.Type

/** The effect of the transform of a plan on its first letters. */
export const PlanSample = Schema.Struct({
  /** Empty for a plan without a transform. */
  letters: Schema.Array(Transformed),
  /** Says of a plan without a transform that it has none. */
  note: Schema.optionalKey(Schema.String)
})
export type PlanSample = typeof PlanSample.Type

/** A run of a plan. */
export const Run = Schema.Struct({
  id: Schema.String,
  action,
  tier: optional(Schema.Int),
  transform: optional(Schema.String),
  state: ReplayRun.RunState,
  /** Why it is in this state; for a run that no process works on, since when, and what to do. */
  stateReason: optional(Schema.String),
  /** Since when no process works on a run that is `running`: resume it. Absent while one does. */
  abandonedSince: optional(Schema.String),
  reason: Schema.String,
  by: Schema.String,
  /** How many letters the plan has. */
  count: Schema.Int,
  /** How many of them are copied, given up or brought back. */
  dealtWith: Schema.Int,
  /** How many of them stay. */
  refused: Schema.Int,
  /** Why. Only with `view-payload`. */
  refusals: optional(Schema.Array(Count)),
  rate: Schema.Number,
  started: Schema.String,
  updated: Schema.String,
  /** The process that worked on it last. */
  host: Schema.String,
  pid: Schema.Int
})
export type Run = typeof Run.Type

/** All runs of a binding, the newest first. */
export const Runs = Schema.Struct({ runs: Schema.Array(Run) })
export type Runs = typeof Runs.Type

/** A run, and the outcome of its copies by now. */
export const Receipt = Schema.Struct({
  ...Run.fields,
  passed: Schema.Int,
  cameBack: Schema.Int,
  waiting: Schema.Int,
  /** Copies that may have come back: their letters were purged, or cannot be read. */
  unknown: Schema.Int,
  elsewhere: Schema.Int,
  /** Whether the run is over and no copy waits. */
  closed: Schema.Boolean
})
export type Receipt = typeof Receipt.Type
