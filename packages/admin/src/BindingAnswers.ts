/**
 * Parts of the admin API's answers about a binding: the records that wait for a retry or a decision, and what failed last.
 */
import * as Schema from "effect/Schema"

const optional = Schema.optionalKey

/** Records that wait in a retry topic. */
export const WaitingRetries = Schema.Struct({
  topic: Schema.String,
  /** The tier, from 1; the first one where several tiers share the topic. */
  tier: Schema.Int,
  /** Offsets of the topic that are not finished: exact where 0, else an upper bound as every lag. */
  waiting: Schema.Int
})
export type WaitingRetries = typeof WaitingRetries.Type

/** The newest failure of a handler or a serde of a binding in this process, whatever became of the record. */
export const NewestFailure = Schema.Struct({
  /** Where the record was read, as `{topic}-{partition}@{offset}`: in a retry topic for a copy. */
  position: Schema.String,
  /** Where it was read first, in the same form. Absent where that is the same. */
  origin: optional(Schema.String),
  exceptionClass: Schema.String,
  /** At most 1024 characters. Only with `view-payload`, and where the request asks for messages. */
  message: optional(Schema.String),
  at: Schema.String
})
export type NewestFailure = typeof NewestFailure.Type

/** The keys of a binding whose record waits for an operator (`orderingMode: "PER_KEY"`), in the partitions of this process. */
export const HeldKeys = Schema.Struct({
  /** How many keys are held. */
  count: Schema.Int,
  /** The record that has held its key for longest, by its place in the source, as `{topic}-{partition}@{offset}`. */
  oldest: Schema.String,
  /** Since when the key of the oldest is parked. */
  since: Schema.String
})
export type HeldKeys = typeof HeldKeys.Type

/** The fields of a binding in a list that say what waits and what has failed. */
export const alerts = {
  /** The part of `lag` that waits in retry topics, by topic. Absent where `lag` is, and where none of its partitions is that of a retry topic. */
  retries: optional(Schema.Array(WaitingRetries)),
  /** Absent while nothing has failed since the process started, and where `outside` is there: only the processes that run the binding know it. */
  newestFailure: optional(NewestFailure),
  /** How many records, or batches that cannot be read, wait for the decision of an operator in this process. Absent while none does. */
  undecided: optional(Schema.Int),
  /** Absent while no key is held in this process. `GET .../parked` lists those of all processes. */
  heldKeys: optional(HeldKeys)
} as const
