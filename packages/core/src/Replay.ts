/** Commands of operators on a binding's dead letter topic, and their reports (connector seed §4.7, rulings 30 to 32 and 61). */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { BrokerError } from "./BrokerError.ts"
import type { RecordPosition } from "./ConsumerRecord.ts"
import type * as DeadLetterGroup from "./DeadLetterGroup.ts"
import type * as DeadLetterList from "./DeadLetterList.ts"
import type { DeadLetterSelection, Position } from "./DeadLetterSelection.ts"
import { isoText } from "./internal/base/isoText.ts"
import type * as LetterTransform from "./LetterTransform.ts"
import type * as Rehearsal from "./Rehearsal.ts"

export type { ListedDeadLetter, Page } from "./DeadLetterList.ts"

/**
 * Commands on the dead letters of a binding, on its cluster, in whatever state it is. Of a binding of several topics `letters`, `groups`, `stats`, `discarded` and `restored` are
 * about all topics, and every other command is one of a topic (`ofTopic`), or fails with `InvalidArgument`. Times are epoch milliseconds. A count is a whole number of 0 or more,
 * or `Infinity` for all. Any other one, NaN, and positions and options of a wrong kind fail with `InvalidArgument`. Replays and discards of one topic and group take turns. One
 * waits for another, at most 20 seconds for one of another process, and then fails with `ReplayRunning`. One whose process was suspended for longer than 15 seconds, that a process
 * of an older version ends, or whose transaction takes longer than 15 seconds, fails with `ReplayTakenOver`, which says how many it has dealt with.
 */
export interface DeadLetters {
  /** The same commands on the dead letters of one of the binding's topics. Fails with `InvalidArgument` for a topic that the binding does not read. */
  readonly ofTopic: (topic: string) => Effect.Effect<DeadLetters, InvalidArgument>
  /** The next `count` records, to where they came from. Partition by partition, in order. Dead letters of other groups are passed over, as in all commands. */
  readonly replay: (
    count: number,
    options?: ReplayOptions
  ) => Effect.Effect<Report, BrokerError | ReplayError | InvalidArgument>
  /** Records that were dead-lettered at `fromMillis` or later, before `toMillis`. The position stays. */
  readonly replayWindow: (
    fromMillis: number,
    toMillis: number,
    options?: ReplayOptions
  ) => Effect.Effect<Report, BrokerError | ReplayError | InvalidArgument>
  /** The next `count` records, to the retry topic of a tier, from 1. Fails with `InvalidArgument` with `orderingMode: "PER_KEY"`. */
  readonly replayToTier: (
    tier: number,
    count: number,
    options?: ReplayOptions
  ) => Effect.Effect<Report, BrokerError | ReplayError | UnknownTier | InvalidArgument>
  /** These records, to where they came from, whatever lies before them. One that is dealt with already is left out. */
  readonly replayRecords: (
    records: ReadonlyArray<Omit<RecordPosition, "topic">>,
    options?: ReplayOptions
  ) => Effect.Effect<Report, BrokerError | ReplayError | InvalidArgument>
  /** Gives these records up: no replay takes them any more, and the journal keeps why, so the reason is not empty. They stay in the topic. The answer is how many. */
  readonly discard: (
    records: ReadonlyArray<Omit<RecordPosition, "topic">>,
    reason: string
  ) => Effect.Effect<number, BrokerError | ReplayError | InvalidArgument>
  /** The records that are given up, with the reasons. */
  readonly discarded: Effect.Effect<ReadonlyArray<Discarded>, BrokerError>
  /** The records that were given up once, and that a plan with action `restore` let wait again. */
  readonly restored: Effect.Effect<ReadonlyArray<Restored>, BrokerError>
  /** Reads the whole topic. */
  readonly stats: Effect.Effect<Stats, BrokerError>
  /** Records of one partition, in order. None when there is no such partition. */
  readonly list: (
    page: DeadLetterList.Page
  ) => Effect.Effect<ReadonlyArray<DeadLetterList.ListedDeadLetter>, BrokerError | InvalidArgument>
  /** The dead letters of the group by the reason of their failure. Reads the whole topic once, and keeps no key and no value. */
  readonly groups: (
    options?: DeadLetterGroup.Options
  ) => Effect.Effect<DeadLetterGroup.GroupReport, BrokerError | InvalidArgument>
  /** The newest dead letters over all partitions, page by page. Reads only as much of the topic as the page needs, and keeps no value. */
  readonly letters: (
    query?: DeadLetterList.Query
  ) => Effect.Effect<DeadLetterList.SummaryPage, BrokerError | InvalidArgument>
  /** One dead letter, with its key and value as the binding's serdes read them today. Undefined when there is none at this position. */
  readonly letter: (
    position: Position
  ) => Effect.Effect<DeadLetterList.DecodedDeadLetter | undefined, BrokerError | InvalidArgument>
  /** The names of the binding's functions that repair dead letters (`transforms`). */
  readonly transforms: ReadonlyArray<string>
  /** Calls the function for these dead letters, 20 at most, and answers what a run with it would publish. Leaves out positions that have none. Publishes nothing. */
  readonly transformed: (
    positions: ReadonlyArray<Position>,
    transform: string
  ) => Effect.Effect<ReadonlyArray<LetterTransform.Preview>, BrokerError | InvalidArgument>
  /**
   * Says of each selected dead letter what today's serdes, handler and rules for errors would do with it. The handler runs only where the binding has a layer for it
   * (`Binding.rehearsable`), and then without idempotency store, circuit breaker, transaction, interceptors, metrics and spans of the binding: nothing is published, committed
   * or remembered. Reads the topic once.
   */
  readonly rehearse: (
    selection: DeadLetterSelection,
    options?: Rehearsal.Options
  ) => Effect.Effect<Rehearsal.Report, BrokerError | InvalidArgument | Rehearsal.DryRunLayerFailed>
  /**
   * Deletes records that were dead-lettered before a time, as far as no younger one lies before them, and answers how many. Fails with `ForeignDeadLetters`, and
   * deletes nothing, when a dead letter of another group is among them. Ends before a batch that cannot be read, and logs that, unless `deleteUnreadable` is given.
   */
  readonly purge: (
    beforeMillis: number,
    options?: PurgeOptions
  ) => Effect.Effect<number, BrokerError | NotPurgeable | ForeignDeadLetters | InvalidArgument>
}

/** How a command replays. */
export interface ReplayOptions {
  /**
   * True also replays the records that were replayed `maxReplays` times already, once more by this command; their replay count goes on rising. Default false: they stay, and
   * the report counts them as `passedOver`.
   */
  readonly ignoreMaxReplays?: boolean
}

/** How `purge` deletes. */
export interface PurgeOptions {
  /**
   * True also deletes the batches that cannot be read, as far as no younger record lies before them: nobody can tell how old their records are and to which group they
   * belong, and the answer counts their offsets. Default false: the purge of a partition ends before the first of them.
   */
  readonly deleteUnreadable?: boolean
}

/** A record that was given up, and why. */
export const Discarded = Schema.Struct({
  groupId: Schema.String,
  partition: Schema.Int,
  offset: Schema.String,
  reason: Schema.String,
  discardedAt: Schema.Number,
  by: Schema.optionalKey(Schema.String),
  /** The run that did it. Absent for a command without a plan, and in entries of older versions. */
  runId: Schema.optionalKey(Schema.String),
  originalTopic: Schema.String,
  originalPartition: Schema.Int,
  originalOffset: Schema.String,
  exceptionClass: Schema.String,
  exceptionMessage: Schema.String
})
export type Discarded = typeof Discarded.Type

/** A record that was given up and waits again: who decided what, why and when. Times are epoch milliseconds. */
export const Restored = Schema.Struct({
  groupId: Schema.String,
  partition: Schema.Int,
  offset: Schema.String,
  reason: Schema.String,
  by: Schema.String,
  restoredAt: Schema.Number,
  /** The run that did it. Absent in entries of older versions. */
  runId: Schema.optionalKey(Schema.String),
  discardedBecause: Schema.String,
  discardedBy: Schema.optionalKey(Schema.String),
  /** The run that had given it up. Absent for a command without a plan, and in entries of older versions. */
  discardedRunId: Schema.optionalKey(Schema.String),
  discardedAt: Schema.Number
})
export type Restored = typeof Restored.Type

/** The result of a replay, in records. */
export interface Report {
  /** Copies that are acknowledged. */
  readonly replayed: number
  /** Records that the replay came to and left, because they were replayed `maxReplays` times already: they stay, and count on in `Stats` and in the depth. */
  readonly passedOver: number
  /**
   * Records that cannot be published where they came from: they are too large for that topic, it does not exist, it may not be written to, or it is neither the main topic of
   * the binding nor one of its `origins`. They stay.
   */
  readonly refused: number
  /** Why, and how many records for each reason: at most 20 reasons, all further ones as `other`. Missing when none was refused. */
  readonly refusals?: ReadonlyMap<string, number>
  /** Dead letters of other groups that were passed over, by group: they stay. */
  readonly foreign: ReadonlyMap<string, number>
  /** Offsets of batches that could not be read, an upper bound of their records: they stay, and no replay moves its position past them. The log names them. */
  readonly unreadable: number
}

/** A dead letter topic by what is not dealt with yet. Times are those of dead-lettering. */
export interface Stats {
  /** Records that are not dealt with, those that were replayed `maxReplays` times, those that a custom handler failed for and those that cannot be read included. */
  readonly count: number
  /** Of the counted ones, those in batches that cannot be read: their offsets, an upper bound of the records. Whose they are and how old is not known. */
  readonly unreadable: number
  /** Of the counted ones, those in state `exhausted`: replayed `maxReplays` times, so that replays leave them. */
  readonly exhausted: number
  /** Of the counted ones, those that the custom handler of the strategy failed for: it is not called again for them. */
  readonly failed: number
  /** All records of the group that lie in the topic, and the offsets of those that cannot be read. */
  readonly stored: number
  /** Records of other groups that lie in the topic, by group: at most 200 groups, all further ones as `other`. */
  readonly foreign: ReadonlyMap<string, number>
  /** Of the counted ones, epoch milliseconds; undefined when there is none. */
  readonly oldestMillis: number | undefined
  /** The newest of the counted ones, epoch milliseconds; undefined when there is none. */
  readonly newestMillis: number | undefined
  /** Of the counted ones, by the class of the last exception: at most 200 classes, all further ones as `other`. */
  readonly byExceptionClass: ReadonlyMap<string, number>
}

/** A count, a time or a reason that no command takes, such as -1, 1.5, NaN or an empty reason. Nothing was done. */
export class InvalidArgument extends Schema.TaggedError<InvalidArgument>()("InvalidArgument", {
  /** The command. */
  command: Schema.String,
  /** The name of the argument. */
  argument: Schema.String,
  /** The given value. */
  given: Schema.String,
  /** The values that the command takes. */
  expected: Schema.String
}) {
  override get message(): string {
    return `${this.command}: ${this.argument} is ${this.given}, expected ${this.expected}. Nothing was done.`
  }
}

/** Another replay or discard of the same topic and group works, and this one has waited long enough. Nothing was done. */
export class ReplayRunning extends Schema.TaggedError<ReplayRunning>()("ReplayRunning", {
  /** The dead letter topic. */
  topic: Schema.String,
  /** The group. */
  groupId: Schema.String,
  /** The host of the other process. */
  host: Schema.String,
  /** The id of the other process on its host. */
  pid: Schema.Number,
  /** When the other one began, epoch milliseconds by its own clock. */
  sinceMillis: Schema.Number,
  /** How many records the other one had dealt with when it said so last, which it does every five seconds. */
  replayed: Schema.Number,
  /** How long this one has waited, in milliseconds. */
  waitedMillis: Schema.Number
}) {
  override get message(): string {
    const since = isoText(this.sinceMillis)
    return `Nothing was done: process ${this.pid} on host '${this.host}' has replayed dead letters of '${this.topic}' for group '${this.groupId}' since ${since}, ${this.replayed} of them so far, and ${Math.round(this.waitedMillis / 1_000)} seconds of waiting were not enough. Try again once it has ended.`
  }
}

/**
 * This replay or discard was ended: this process was suspended for longer than its lease and another one took over, a process began whose version knows no leases, or Kafka
 * ended a transaction that took longer than 15 seconds. The records that are dealt with stay so, and no record is replayed twice.
 */
export class ReplayTakenOver extends Schema.TaggedError<ReplayTakenOver>()("ReplayTakenOver", {
  /** The dead letter topic. */
  topic: Schema.String,
  /** The group. */
  groupId: Schema.String,
  /** How many records this one has dealt with. */
  replayed: Schema.Number,
  /** The host of the process that took over. Missing where none is known. */
  host: Schema.optionalKey(Schema.String),
  /** The id of the process that took over, on its host. Missing where none is known. */
  pid: Schema.optionalKey(Schema.Number)
}) {
  override get message(): string {
    const unknown = "A process of an older version, or a transaction of more than 15 seconds,"
    const by = this.host === undefined ? unknown : `Process ${this.pid} on host '${this.host}'`
    return `${by} ended this replay of dead letters of '${this.topic}' for group '${this.groupId}', after ${this.replayed} of them. They stay dealt with. Run the replay again for the others.`
  }
}

/** The failures of a replay or discard that another process causes. */
export type ReplayError = ReplayRunning | ReplayTakenOver

/** The binding has no such tier. Nothing was done. */
export class UnknownTier extends Schema.TaggedError<UnknownTier>()("UnknownTier", {
  /** The tier that was asked for. */
  tier: Schema.Number,
  /** How many tiers the binding has. */
  tiers: Schema.Number
}) {
  override get message(): string {
    return this.tiers === 0
      ? `There is no tier ${this.tier}: the binding has none.`
      : `There is no tier ${this.tier}: the binding has tiers 1 to ${this.tiers}.`
  }
}

/**
 * Dead letters of other groups lie among those to purge. Kafka deletes only the oldest records of a partition, whoever owns them, so nothing was purged.
 */
export class ForeignDeadLetters extends Schema.TaggedError<ForeignDeadLetters>()("ForeignDeadLetters", {
  /** The dead letter topic. */
  topic: Schema.String,
  /** How many records of each other group the purge would have deleted. */
  owners: Schema.Record(Schema.String, Schema.Number)
}) {
  override get message(): string {
    const whose = Object.entries(this.owners).map(([group, records]) => `${records} of group '${group}'`)
    return `Nothing was purged from '${this.topic}', because the purge would have deleted ${whose.join(", ")}. Give each group a topic of its own (naming: TopicName.perGroup), or name a group that was renamed in 'adopts'.`
  }
}

/** Kafka deletes no records of a topic that is only compacted. Nothing was purged. */
export class NotPurgeable extends Schema.TaggedError<NotPurgeable>()("NotPurgeable", {
  /** The dead letter topic. */
  topic: Schema.String,
  /** Its `cleanup.policy`. */
  cleanupPolicy: Schema.String
}) {
  override get message(): string {
    return `Records of '${this.topic}' cannot be purged: its cleanup.policy is '${this.cleanupPolicy}'. Set it to 'delete'.`
  }
}
