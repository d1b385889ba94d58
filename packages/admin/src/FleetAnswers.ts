/**
 * The answers of the admin API about the fleet: all processes that run bindings of the same groups. Times are ISO-8601 texts in UTC by the cluster's clock, offsets and lags are
 * texts of decimal digits.
 */
import { EventBusError, FleetView } from "@eventbus/core"
import * as Schema from "effect/Schema"

const optional = Schema.optionalKey

/** The binding, or one of its retry tiers, that a hold or a release is about. */
const target = {
  /** `{cluster}:{binding}`. */
  key: Schema.String,
  name: Schema.String,
  cluster: Schema.String,
  groupId: Schema.String,
  /** The retry tier, from 1. Absent when it is about the whole binding. */
  tier: optional(Schema.Int)
}

/** A hold: no process handles a record of its target. */
export const Hold = Schema.Struct({
  ...target,
  /** The one who holds. */
  by: Schema.String,
  reason: Schema.String,
  since: Schema.String,
  /** When it ends by itself. Absent when it lasts until somebody releases it, and where its time lies outside of what a date can hold. */
  until: optional(Schema.String)
})
export type Hold = typeof Hold.Type

/** The last release of a target. */
export const Release = Schema.Struct({
  ...target,
  /** The one who released. */
  by: Schema.String,
  reason: Schema.String,
  at: Schema.String,
  /** The hold that it ended. */
  held: Schema.Struct({ by: Schema.String, reason: Schema.String, since: Schema.String })
})
export type Release = typeof Release.Type

/** A partition that stands. */
export const StandingPartition = Schema.Struct({
  topic: Schema.String,
  partition: Schema.Int,
  /** The first offset that is not finished. */
  position: Schema.String,
  lag: Schema.String,
  /** For how long it has not moved. */
  forMillis: Schema.Number,
  /** Why, in one word: `record`, `unreadable`, `transaction` or `waiting`. */
  why: Schema.String
})
export type StandingPartition = typeof StandingPartition.Type

/** A binding as its process last told. */
export const ProcessBinding = Schema.Struct({
  key: Schema.String,
  groupId: Schema.String,
  state: EventBusError.ContainerState,
  pausedBy: Schema.Array(Schema.String),
  partitions: Schema.Int,
  /** Offsets that are not finished, over these partitions. Absent where the process owns none: then it does not know how far the group is. */
  lag: optional(Schema.String),
  inFlight: Schema.Int,
  standing: Schema.Array(StandingPartition)
})
export type ProcessBinding = typeof ProcessBinding.Type

/** A process of the fleet. */
export const Process = Schema.Struct({
  id: Schema.String,
  /** Empty, as its version, for a process whose heartbeat cannot be read. */
  host: Schema.String,
  pid: Schema.Int,
  /** The version of the application. */
  version: Schema.String,
  /** The version of the formats that it writes. */
  protocol: Schema.Int,
  /** False for a process of a newer version, of which nothing but the id is known. */
  isReadable: Schema.Boolean,
  /** Processes of one deployment have the same. */
  configHash: Schema.String,
  /** `stale`: its lease has ended, and it has not answered since. */
  status: Schema.Literals(["live", "stale"]),
  lastSeen: Schema.String,
  /** When it is stale unless it tells something before. */
  leaseEnds: Schema.String,
  /** How far its wall clock is ahead of the cluster's; below 0: behind. */
  skewMillis: Schema.Number,
  /** Whether that is more than 2 seconds. */
  isSkewed: Schema.Boolean,
  /** `known`, or why it does not know the holds. */
  control: Schema.String,
  bindings: Schema.Array(ProcessBinding),
  /** Bindings that its heartbeat had no room for. */
  omitted: Schema.Int
})
export type Process = typeof Process.Type

/** The fleet at one moment. */
export const View = Schema.Struct({
  asOf: Schema.String,
  /** By host and id. */
  processes: Schema.Array(Process),
  /** The holds that have not ended. */
  holds: Schema.Array(Hold),
  /** The last release of each target, the newest first. */
  releases: Schema.Array(Release),
  /** Everything about the topics of the fleet that is not as it should be. */
  problems: Schema.Array(FleetView.TopicProblem)
})
export type View = typeof View.Type

/** The final answer of a process. */
export const Answer = Schema.Struct({
  process: Schema.String,
  host: Schema.String,
  state: FleetView.AckState,
  /** The bindings that it was about, in this process. */
  bindings: Schema.Int,
  /** Why it was refused. */
  error: optional(Schema.String)
})
export type Answer = typeof Answer.Type

/** A live process that has not answered to the end. */
export const Missing = Schema.Struct({
  process: Schema.String,
  host: Schema.String,
  pid: Schema.Int,
  /** Whether it has begun. */
  accepted: Schema.Boolean
})
export type Missing = typeof Missing.Type

/** A command of scope `fleet`, and who has answered so far. */
export const Commanded = Schema.Struct({
  verb: Schema.Literals(FleetView.verbs),
  ...target,
  by: Schema.String,
  reason: Schema.String,
  /** The id of the command. Absent for `pause` and `resume`, which are a hold and its release: a process that starts later obeys them, too. */
  id: optional(Schema.String),
  /** When the hold of a `pause` ends by itself. */
  until: optional(Schema.String),
  /** Of a `resume`: whether there was a hold. */
  wasHeld: optional(Schema.Boolean),
  answers: Schema.Array(Answer),
  /** Empty: every live process with the binding has answered. */
  missing: Schema.Array(Missing)
})
export type Commanded = typeof Commanded.Type
