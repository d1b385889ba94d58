/**
 * The log line of a decision about a held key. It does not quote the key.
 */
import type { RecordPosition } from "../../ConsumerRecord.ts"
import type { KeyDecision } from "../../ParkedKeys.ts"

export const decided = ({ topic, partition, offset }: RecordPosition, { kind, reason }: KeyDecision): string => {
  const done = kind === "skip" ? "skipped" : "retried"
  return `An operator ${done} the record ${topic}-${partition}@${offset}, which holds its key: ${reason}`
}
