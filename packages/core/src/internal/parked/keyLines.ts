/**
 * The log line of a decision about a held key. It does not quote the key.
 */
import type { GivenDecision } from "../../ParkedKeys.ts"

export const decided = ({ at, decision }: GivenDecision): string => {
  const done = decision.kind === "skip" ? "skipped" : "retried"
  const where = `${at.topic}-${at.partition}@${at.offset}`
  return `An operator ${done} the record ${where}, which holds its key: ${decision.reason}`
}
