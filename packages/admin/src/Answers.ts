/**
 * The answers of the admin API. Times are ISO-8601 texts in UTC, offsets are texts of decimal digits, and lags are numbers.
 */
import { EventBusError } from "@eventbus/core"
import * as Schema from "effect/Schema"
import * as BindingAnswers from "./BindingAnswers.ts"
import { permissions } from "./internal/permissions.ts"

const optional = Schema.optionalKey

/** A number of things that have something in common, such as an exception class. */
export const Count = Schema.Struct({ name: Schema.String, count: Schema.Int })
export type Count = typeof Count.Type

/** A hold of the fleet on a binding, or on one of its retry tiers. */
export const BindingHold = Schema.Struct({
  /** Absent when the whole binding is held. */
  tier: optional(Schema.Int),
  /** The one who holds. */
  by: Schema.String,
  reason: Schema.String,
  since: Schema.String,
  /** When it ends by itself. Absent when it lasts until somebody releases it. */
  until: optional(Schema.String),
  /** `control-unavailable`: no operator holds, but this process alone, since it cannot read the control topic of its fleet, until it can. Absent for holds of operators. */
  condition: optional(Schema.String)
})
export type BindingHold = typeof BindingHold.Type

/** A binding that other processes run, as its cluster shows it. */
export const OutsideBinding = Schema.Struct({
  /** When the cluster answered last. Absent before its first answer. */
  asOf: optional(Schema.String),
  /** Members of its group in all processes; with 0 nobody consumes. Absent before the first answer. */
  members: optional(Schema.Int),
  /** Why the cluster cannot be asked now. Absent where it answers. */
  problem: optional(Schema.String)
})
export type OutsideBinding = typeof OutsideBinding.Type

/** A binding in a list. */
export const BindingSummary = Schema.Struct({
  /** `{cluster}:{binding}`, which names the binding in every request. */
  key: Schema.String,
  name: Schema.String,
  cluster: Schema.String,
  topic: Schema.String,
  /** All topics that it reads, of which `topic` is the first. Absent for a binding of one topic. */
  topics: optional(Schema.Array(Schema.String)),
  groupId: Schema.String,
  /** `CREATED` where `outside` is there: this process never runs it. */
  state: EventBusError.ContainerState,
  /** Since when it has this state. */
  since: Schema.String,
  /** The reasons that hold it: `operator`, `breaker`, `fleet`, or several of them. */
  pausedBy: Schema.Array(Schema.String),
  /** Retry tiers that are paused by themselves. */
  pausedTiers: Schema.Array(Schema.Int),
  /** The holds of the fleet on it and on its retry tiers. Absent without one. */
  holds: optional(Schema.Array(BindingHold)),
  /**
   * Offsets that are not finished, of the partitions that this process owns. Absent while it owns none, as while the binding is stopped: then it does not know how far its group
   * is. Where `outside` is there: offsets that are not committed, of all partitions, as of `outside.asOf`.
   */
  lag: optional(Schema.Int),
  partitions: Schema.Int,
  consumersRunning: Schema.Int,
  /**
   * Dead letters of the group that are not dealt with, as the cluster said last: it is asked every 10 seconds while somebody looks. Absent before its first answer, and where
   * metrics are off.
   */
  deadLetters: optional(Schema.Int),
  /** Absent for a binding without a circuit breaker. */
  breaker: optional(Schema.String),
  ...BindingAnswers.alerts,
  /** There where the process runs no bindings, and looks at those of other processes from outside. */
  outside: optional(OutsideBinding)
})
export type BindingSummary = typeof BindingSummary.Type

/** The topics of a binding, or one of its retry tiers. */
export const Container = Schema.Struct({
  name: Schema.String,
  tier: Schema.Int,
  topic: Schema.String,
  topics: optional(Schema.Array(Schema.String)),
  state: EventBusError.ContainerState
})
export type Container = typeof Container.Type

/** A member of the group. */
export const Consumer = Schema.Struct({
  index: Schema.Int,
  status: Schema.Literals(["connecting", "running", "crashed", "fenced"]),
  since: Schema.String,
  crashes: Schema.Int,
  /** Why it crashed last. */
  error: optional(Schema.String)
})
export type Consumer = typeof Consumer.Type

/** A partition that this process owns. */
export const Partition = Schema.Struct({
  topic: Schema.String,
  partition: Schema.Int,
  tier: Schema.Int,
  consumer: Schema.Int,
  position: Schema.String,
  committed: optional(Schema.String),
  logEnd: Schema.String,
  lag: Schema.Int,
  /** The reasons that hold its fetching. */
  pauses: Schema.Array(Schema.String),
  inFlight: Schema.Int,
  buffered: Schema.Int,
  /** For how long the position has not moved although there is lag. */
  waitingMillis: Schema.Number
})
export type Partition = typeof Partition.Type

/** A partition as the cluster shows it, whichever process owns it. */
export const CommittedPartition = Schema.Struct({
  topic: Schema.String,
  partition: Schema.Int,
  tier: Schema.Int,
  /** Absent before the first commit. */
  committed: optional(Schema.String),
  logEnd: Schema.String,
  lag: Schema.Int
})
export type CommittedPartition = typeof CommittedPartition.Type

/** A record that holds its partition until an operator decides about it. The message of its error is in the log. */
export const HeldRecord = Schema.Struct({
  topic: Schema.String,
  partition: Schema.Int,
  offset: Schema.String,
  exceptionClass: Schema.String,
  since: Schema.String
})
export type HeldRecord = typeof HeldRecord.Type

/** The figures of a binding in this process, since it was started. The connector's metrics have the same ones by name. */
export const MetricsSummary = Schema.Struct({
  /** Records whose handler succeeded. */
  processed: Schema.Int,
  /** Deliveries that failed. */
  failed: Schema.Int,
  /** The failed ones by the class of their last error. */
  failedByException: Schema.Array(Count),
  /** Records that were routed to a retry topic. */
  routed: Schema.Int,
  /** The routed ones by the tier that they went to. */
  routedByTier: Schema.Array(Count),
  /** Records that were stored in the dead letter topic. */
  deadLettered: Schema.Int,
  /** The dead-lettered ones by reason. */
  deadLetteredByReason: Schema.Array(Count),
  /** Records that were dropped on purpose. */
  skipped: Schema.Int,
  /** Refused attempts to publish a copy. */
  publishFailed: Schema.Int,
  /** Dead letters of the group that are not dealt with, as the cluster said last. */
  deadLetterDepth: optional(Schema.Int),
  /** Calls of the handler. */
  handlerCalls: Schema.Int,
  /** The mean time in one call. Absent before the first. */
  handlerMeanMillis: optional(Schema.Number),
  /** The longest time in one call. Absent before the first. */
  handlerMaxMillis: optional(Schema.Number)
})
export type MetricsSummary = typeof MetricsSummary.Type

/** A binding in full. */
export const BindingDetail = Schema.Struct({
  ...BindingSummary.fields,
  containers: Schema.Array(Container),
  consumers: Schema.Array(Consumer),
  assigned: Schema.Array(Partition),
  held: Schema.Array(HeldRecord),
  /** The reasons of its health, in one line each. Empty when nothing is wrong. */
  problems: Schema.Array(Schema.String),
  /** Absent where metrics are off, and for a binding that was never started. */
  metrics: optional(MetricsSummary),
  /** All partitions, whichever process owns them. There where `outside` is. */
  committed: optional(Schema.Array(CommittedPartition))
})
export type BindingDetail = typeof BindingDetail.Type

/** The result of a replay, in records. */
export const ReplayReport = Schema.Struct({
  /** Copies that are acknowledged. */
  replayed: Schema.Int,
  /** Records that stay because they were replayed `maxReplays` times. */
  passedOver: Schema.Int,
  /** Records that cannot be published where they came from. */
  refused: Schema.Int,
  /** Why, with the number of records, the most frequent reason first. Absent when none was refused. */
  refusals: optional(Schema.Array(Count)),
  /** Dead letters of other groups, by group: they stay. */
  foreign: Schema.Array(Count),
  /** Offsets of batches that cannot be read, an upper bound of their records: they stay. */
  unreadable: Schema.Int
})
export type ReplayReport = typeof ReplayReport.Type

/** A dead letter topic by what is not dealt with yet. Times are those of dead-lettering. */
export const DeadLetterStats = Schema.Struct({
  /** Records that are not dealt with. */
  count: Schema.Int,
  /** Of these, the ones that were replayed `maxReplays` times. */
  exhausted: Schema.Int,
  /** Of these, the ones that the custom handler failed for. */
  failed: Schema.Int,
  /** Of these, those in batches that cannot be read: their offsets, an upper bound of the records. */
  unreadable: Schema.Int,
  /** All records of the group that lie in the topic. */
  stored: Schema.Int,
  /** Records of other groups, by group. */
  foreign: Schema.Array(Count),
  /** Absent without a record, and where its time lies outside of what a date can hold. */
  oldest: optional(Schema.String),
  /** Absent as above. */
  newest: optional(Schema.String),
  /** The counted ones by the class of the last exception, the most frequent first. */
  byExceptionClass: Schema.Array(Count)
})
export type DeadLetterStats = typeof DeadLetterStats.Type

/** The result of a purge. */
export const PurgeReport = Schema.Struct({
  /** Records that were deleted. */
  purged: Schema.Int
})
export type PurgeReport = typeof PurgeReport.Type

/** Something that is not as it should be. */
export const HealthReason = Schema.Struct({
  /** The kind, such as `BreakerOpen`: a tag of `Health.Reason`. */
  reason: Schema.String,
  /** All of it in one line. */
  message: Schema.String,
  cluster: optional(Schema.String),
  /** The bindings that it is about. */
  bindings: Schema.Array(Schema.String),
  since: optional(Schema.String),
  /** The topic that it is about. */
  topic: optional(Schema.String),
  partition: optional(Schema.Int),
  /** Offsets of the partition that are not finished. */
  lag: optional(Schema.Int),
  /** For how long the partition has not moved. */
  forMillis: optional(Schema.Number)
})
export type HealthReason = typeof HealthReason.Type

/** The health of all bindings of this process. */
export const HealthReport = Schema.Struct({
  status: Schema.Literals(["UP", "DEGRADED", "DOWN"]),
  /** False only where a restart of the process can help. */
  live: Schema.Boolean,
  /** Whether each started binding consumes, and nothing holds it. */
  ready: Schema.Boolean,
  /** The worst first. Empty when it is `UP`. */
  reasons: Schema.Array(HealthReason),
  /** There where the process runs no bindings: the status is that of its way to the clusters, and says nothing about the processes that run them. */
  outside: optional(Schema.Literal(true))
})
export type HealthReport = typeof HealthReport.Type

/** All bindings and their health, at one moment. */
export const State = Schema.Struct({
  /** As in the list of bindings. */
  bindings: Schema.Array(BindingSummary),
  health: HealthReport
})
export type State = typeof State.Type

/** An event of the stream of states. */
export const StreamEvent = Schema.Struct({
  /** The name of the state. The same state has the same name in every process, and after a restart. */
  id: Schema.optional(Schema.String),
  /** `state`: the data are it. `heartbeat`: nothing has changed, and the data are null. */
  event: Schema.Literals(["state", "heartbeat"]),
  data: Schema.fromJsonString(Schema.NullOr(State))
})
export type StreamEvent = typeof StreamEvent.Type

/** The permissions of the caller on a binding. */
export const Permissions = Schema.Struct({
  /** The name that the authorizer gave the caller, or `this machine` without an authorizer. */
  caller: Schema.String,
  /** Nothing but `view` and `view-payload` where the API is read-only. */
  permissions: Schema.Array(Schema.Literals(permissions)),
  /** Whether commands on the binding may be of scope `fleet`: the program belongs to one. */
  hasFleet: Schema.Boolean,
  /** The names of the functions of the binding that repair dead letters, which plans of the caller may name. Empty without the permission `transform`. */
  transforms: Schema.Array(Schema.String)
})
export type Permissions = typeof Permissions.Type
