/**
 * What commands on a dead letter topic report: replays, statistics, and why one was refused (connector seed §4.7).
 */
import { Schema } from "effect"

export interface Report {
  /** Copies that are acknowledged. */
  readonly replayed: number
  /** Records that were replayed `maxReplays` times already: they stay. */
  readonly passedOver: number
  /** Records that cannot be published where they came from, because they are too large for it or it does not exist: they stay. */
  readonly refused: number
}

/** A dead letter topic by what is not replayed yet. Times are those of dead-lettering. */
export interface Stats {
  /** Records that a replay would take, or pass over because of `maxReplays`. */
  readonly count: number
  /** All records that lie in the topic. */
  readonly stored: number
  /** Of the counted ones, epoch milliseconds; undefined when there is none. */
  readonly oldestMillis: number | undefined
  readonly newestMillis: number | undefined
  /** Of the counted ones, by the class of the last exception: at most 200 classes, all further ones as `other`. */
  readonly byExceptionClass: ReadonlyMap<string, number>
}

/** The binding has no such tier. Nothing was replayed. */
export class UnknownTier extends Schema.TaggedError<UnknownTier>()("UnknownTier", {
  tier: Schema.Number,
  tiers: Schema.Number
}) {
  override get message(): string {
    return this.tiers === 0
      ? `There is no tier ${this.tier}: the binding has none.`
      : `There is no tier ${this.tier}: the binding has tiers 1 to ${this.tiers}.`
  }
}

/** Kafka deletes no records of a topic that is only compacted. Nothing was purged. */
export class NotPurgeable extends Schema.TaggedError<NotPurgeable>()("NotPurgeable", {
  topic: Schema.String,
  cleanupPolicy: Schema.String
}) {
  override get message(): string {
    return `Records of '${this.topic}' cannot be purged: its cleanup.policy is '${this.cleanupPolicy}'. Set it to 'delete'.`
  }
}
