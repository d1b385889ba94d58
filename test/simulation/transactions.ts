/**
 * The assignment whose transaction a commit belongs to, and what the transaction makes of a record.
 */
import type { Assignments } from "./Assignments.ts"
import type { Assignment, LedgerRecord, RecordState } from "./accounts.ts"
import type { PartitionName } from "./History.ts"
import type { Logs } from "./Logs.ts"

interface Known {
  readonly logs: Logs
  readonly assignments: Assignments
}

/** The assignment whose transaction commits these records. An earlier transaction came to nothing unless it did all records that are still there. */
export const assignmentOf = (
  known: Known,
  partition: PartitionName,
  open: ReadonlyArray<LedgerRecord>
): Assignment | undefined => {
  const stillThere = open.filter(({ removed }) => removed === "no")
  const newestFirst = known.assignments.newestFirst(partition)
  const hasFate = (assignment: Assignment) => (record: LedgerRecord) => stateIn(known, record, assignment) !== undefined
  if (stillThere.length > 0) return newestFirst.find((assignment) => stillThere.every(hasFate(assignment)))
  // Every record of it was deleted since it was read.
  const active = newestFirst.find((assignment) => assignment.state === "active" && open.some(hasFate(assignment)))
  return active ?? newestFirst[0]
}

/** The state that the transaction of an assignment gives to a record. */
export const stateIn = (
  { logs }: Known,
  { offset, binding, plan }: LedgerRecord,
  assignment: Assignment
): RecordState | undefined => {
  if (logs.planOf(binding).listener !== "transactional") return undefined
  if (assignment.pending.has(offset)) return "done"
  if (!assignment.failedDeliveries.has(offset)) return undefined
  if (assignment.sent.has(offset)) return "routed"
  return plan.behaviour._tag === "Ignorable" ? "skipped" : undefined
}
