/**
 * The answers of the admin API about records that wait for the decision of an operator. Times are ISO-8601 texts in UTC.
 *
 * The message of an error may quote the record, so it is there only for callers with the permission `view-payload`.
 */
import * as Schema from "effect/Schema"

const optional = Schema.optionalKey

/** A record, or a batch that cannot be read, about which an operator can decide. */
export const HeldRecord = Schema.Struct({
  /** Its place in its topic, as `{partition}@{offset}`. */
  position: Schema.String,
  topic: Schema.String,
  /**
   * `record`: it holds its partition, since its attempts are used up or its route is a pause. `candidate`: it is all that a half-open circuit breaker has to try. `batch`: the
   * records from here on cannot be read. In the dead letter topic it holds the custom handler of the strategy.
   */
  kind: Schema.Literals(["record", "candidate", "batch"]),
  /** The decisions that it allows. Nothing of a batch can be dead-lettered. */
  decisions: Schema.Array(Schema.Literals(["skip", "dead-letter"])),
  since: Schema.String,
  /** Of a `record`. */
  exceptionClass: optional(Schema.String),
  /** The message of its error. Only with `view-payload`. */
  message: optional(Schema.String),
  /** The last offset of a `batch`. */
  lastOffset: optional(Schema.String),
  /** Why a `batch` cannot be read, and the remedy. */
  detail: optional(Schema.String)
})
export type HeldRecord = typeof HeldRecord.Type

/** Everything of a binding that waits for a decision in this process. */
export const AllHeld = Schema.Struct({ held: Schema.Array(HeldRecord) })
export type AllHeld = typeof AllHeld.Type
