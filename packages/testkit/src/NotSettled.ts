/**
 * The error of `TestBus.settled`: the records that are not done, each with the reason.
 */
import * as Schema from "effect/Schema"

/** The first record of a partition that is not handled and committed, as a schema. */
export const StuckRecord = Schema.Struct({
  /** Name of the binding. */
  binding: Schema.String,
  /** Topic in which the record lies: the main topic or a retry topic. */
  topic: Schema.String,
  partition: Schema.Int,
  offset: Schema.BigInt,
  /** Key as text; undefined for a record without a key. */
  key: Schema.UndefinedOr(Schema.String),
  /** Number of records behind it in its partition. */
  behind: Schema.Int,
  /** Why it is not done: what it waits for and until when, what paused it, what failed. */
  reason: Schema.String
})
/** The first record of a partition that is not handled and committed. */
export type StuckRecord = typeof StuckRecord.Type

/** Not every record is handled and committed. */
export class NotSettled extends Schema.TaggedError<NotSettled>()("NotSettled", {
  /** Time of the check since the bus started, as text. */
  at: Schema.String,
  /** One entry for each partition that has unfinished records. */
  stuck: Schema.Array(StuckRecord)
}) {
  override get message(): string {
    const count = this.stuck.reduce((sum, { behind }) => sum + 1 + behind, 0)
    return [
      `At ${this.at}, ${count === 1 ? "1 record is" : `${count} records are`} not done:`,
      ...this.stuck.map(line)
    ].join("\n")
  }
}

const line = ({ binding, topic, partition, offset, key, behind, reason }: StuckRecord): string => {
  const named = key === undefined ? "" : ` (key ${key})`
  return `- ${topic}-${partition}@${offset}${named} of binding '${binding}': ${reason}${behind === 0 ? "" : `; ${behind} more behind it`}`
}
