/**
 * A selection of dead letters as the audit log has it: without the keys of records, of which it has the number.
 */
import type { AuditView, DeadLetterSelection } from "@eventbus/core"
import * as RunAnswers from "./runAnswers.ts"

/** The parts of a selection that name no record by its key. */
export const targetOf = (select: DeadLetterSelection.DeadLetterSelection): AuditView.Target => {
  const { keys: _, ...target } = RunAnswers.selectionOf(select, false)
  return target
}
