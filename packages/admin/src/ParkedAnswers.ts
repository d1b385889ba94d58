/**
 * The answers of the admin API about parked keys (`orderingMode: "PER_KEY"`). Times are ISO-8601 texts in UTC.
 *
 * A key and the message of an error are parts of records, so they are there only for callers with the permission `view-payload`.
 */
import { ParkedKeys } from "@eventbus/core"
import * as Schema from "effect/Schema"

const optional = Schema.optionalKey

/** A key whose records wait in order. */
export const ParkedKey = Schema.Struct({
  /** The place in the source of the record that the key waits for, as `{partition}@{offset}`. */
  position: Schema.String,
  /** The source. */
  topic: Schema.String,
  /** `held`: its record waits for an operator. `waiting`: it waits for its delivery. `draining`: it is done, and what followed it is handled in order. `stranded`: its lock leads the group nowhere, and its partition waits for `accept-loss`. */
  state: Schema.Literals(ParkedKeys.states),
  /** Since when the key is parked. */
  since: Schema.String,
  /** When the record of a `waiting` key is due. */
  due: optional(Schema.String),
  /** The retry tier that it waits in. */
  tier: optional(Schema.Number),
  /** The retry topic that tells of the key. */
  retryTopic: optional(Schema.String),
  /** The key as text. Only with `view-payload`. */
  key: optional(Schema.String),
  /** The class of the last failure, where it is known. */
  exceptionClass: optional(Schema.String),
  /** The message of the last failure, where it was kept. Only with `view-payload`. */
  message: optional(Schema.String),
  /** Records that are known to wait behind it. Absent in a partition of another process. */
  followers: optional(Schema.Number),
  /** Whether more of them can be in the source. */
  hasMoreFollowers: Schema.Boolean,
  /** Whether the process that answers owns the partition. Of another one it tells what that has committed. */
  isOwnedHere: Schema.Boolean
})
export type ParkedKey = typeof ParkedKey.Type

/** A page of the parked keys of a group: those that are held first, and of each state those that have waited longest. */
export const AllParked = Schema.Struct({
  keys: Schema.Array(ParkedKey),
  /** How many keys there are in each state, on all pages together. */
  counts: Schema.Struct({
    held: Schema.Number,
    waiting: Schema.Number,
    draining: Schema.Number,
    stranded: Schema.Number
  }),
  /** That of the binding. Only `PER_KEY` parks keys: with another one, these are those that were parked before. */
  orderingMode: Schema.String,
  /** Asks for the page behind this one. Absent on the last page. */
  next: optional(Schema.String)
})
export type AllParked = typeof AllParked.Type

/** A decision that was given. */
export const ParkedDecision = Schema.Struct({
  /** The key as it was found. */
  key: ParkedKey,
  /** `here`: the process that answers owns the partition, and has begun. `owner`: the owner of the partition reads the decision in the first retry topic. */
  by: Schema.Literals(["here", "owner"])
})
export type ParkedDecision = typeof ParkedDecision.Type

/** The stranded keys whose loss was accepted. */
export const AcceptedLoss = Schema.Struct({
  /** How many. Their partitions begin within seconds. */
  keys: Schema.Int
})
export type AcceptedLoss = typeof AcceptedLoss.Type
