/**
 * What `TestBus.settled` fails with: which records are not done, and what keeps each of them.
 */
import { Schema } from "effect"

/** The first record of a partition that is not handled and committed. */
export const StuckRecord = Schema.Struct({
  binding: Schema.String,
  topic: Schema.String,
  partition: Schema.Int,
  offset: Schema.BigInt,
  /** As text; undefined when there is none. */
  key: Schema.UndefinedOr(Schema.String),
  /** Records behind it in its partition. */
  behind: Schema.Int,
  /** What keeps it: what it waits for and until when, who holds it, what failed. */
  reason: Schema.String
})
export type StuckRecord = typeof StuckRecord.Type

export class NotSettled extends Schema.TaggedError<NotSettled>()("NotSettled", {
  /** When it was looked, as text, since the bus began. */
  at: Schema.String,
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
