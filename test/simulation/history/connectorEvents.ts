/**
 * Applies the events of a connector to a ledger.
 */
import type { EventBusEvent } from "@eventbus/core"
import type { Assignment, FailedDelivery } from "./accounts.ts"
import type { Entry, PartitionName } from "./History.ts"
import type { Ledger } from "./Ledger.ts"

type ConnectorEntry = Extract<Entry, { readonly _tag: "Connector" }>
type PartitionEvent = Extract<EventBusEvent.EventBusEvent, { readonly generation: number }>

export const applyConnectorEvent = (ledger: Ledger, entry: ConnectorEntry): void => {
  const { process, event, atMillis, fiber } = entry
  ledger.breakers.connector(entry)
  // A failed delivery reports to the breaker at once, and the breaker opens at once.
  const failed = ledger.lastFailedDelivery
  if (event._tag === "BreakerChanged" && event.to === "OPEN" && failed !== undefined && failed.fiber === fiber) {
    failed.breaker ??= "opened the breaker"
  }
  ledger.lastFailedDelivery = undefined
  if (event._tag === "SessionClosed") {
    for (const assignment of ledger.assignments.ofProcess(process)) {
      const ofSession = assignment.consumer === event.consumer && assignment.binding === event.binding
      if (ofSession && (assignment.state === "active" || assignment.state === "revoked")) assignment.state = "closed"
    }
    return
  }
  if (event._tag === "StateChanged") {
    const key = `${process} ${event.binding}`
    if (event.to === "PAUSED") ledger.pausedUntilMillis.set(key, Number.POSITIVE_INFINITY)
    if (event.from === "PAUSED" && event.to === "RUNNING") ledger.pausedUntilMillis.set(key, atMillis)
    return
  }
  if (!("partition" in event)) return
  const partition: PartitionName = `${event.topic}/${event.partition}`
  if (event._tag === "PartitionAssigned") {
    if (!ledger.committed.has(partition)) ledger.logs.markDeletedBeforeStart(partition, event.position)
    ledger.assignments.begin(process, event, ledger.stopping.get(process))
    return
  }
  const assignment = ledger.assignments.current(process, event.consumer, partition)
  if (assignment !== undefined) applyToAssignment(ledger, entry, event, assignment)
}

const applyToAssignment = (
  ledger: Ledger,
  { process, atMillis, fiber }: ConnectorEntry,
  event: PartitionEvent,
  assignment: Assignment
): void => {
  const { partition } = assignment
  switch (event._tag) {
    case "PartitionRevoked":
      assignment.state = "revoked"
      assignment.endingSinceMillis ??= atMillis
      return
    case "PartitionReleased":
      assignment.state = "released"
      return
    case "PartitionLost":
      assignment.state = "lost"
      return
    case "DrainTimedOut":
      assignment.drainTimedOut = true
      return
    case "ProcessingBudgetReached":
      assignment.budgetReached = true
      return
    case "AttemptFailed": {
      const { attempt: attempts, failure } = event
      const { budgetReached } = assignment
      assignment.budgetReached = false
      if (event.retryInMillis !== undefined) return
      const breaker = ledger.breakers.holding(process, event)
      const failed: FailedDelivery = { attempts, failure, atMillis, fiber, budgetReached, breaker }
      ledger.lastFailedDelivery = failed
      assignment.failedDeliveries.set(event.record.offset, failed)
      assignment.sent.delete(event.record.offset)
      return
    }
    case "PublishFailed":
      assignment.publishFailed = true
      return
    case "RecordsGone":
      // Its offsets are those of a topic that is not there any more.
      if (event.cause === "topic-deleted") return
      for (const [offset, record] of ledger.logs.byPartition.get(partition) ?? []) {
        if (offset >= event.from && offset < event.to) record.reportedGone = true
      }
      return
    case "Settled":
      if (event.settlement === "Abandoned") assignment.abandonedMillis = atMillis
      settle(ledger, event, assignment)
  }
}

const stateOf = { Routed: "routed", DeadLettered: "dead-lettered", Skipped: "skipped" } as const

const settle = (
  ledger: Ledger,
  { record: { offset }, settlement, target, failure }: Extract<PartitionEvent, { readonly _tag: "Settled" }>,
  assignment: Assignment
): void => {
  const { partition } = assignment
  const { logs, sources } = ledger
  // A record of another group is as good as none.
  if (logs.ownerOfForeign(partition, offset) !== undefined) return
  if (target !== undefined) sources.reassign(assignment, logs.record(partition, offset))
  const given = assignment.failedDeliveries.get(offset)
  const endingSince = assignment.endingSinceMillis ?? Number.NEGATIVE_INFINITY
  if (settlement === "Abandoned" && given !== undefined && given.atMillis < endingSince)
    assignment.abandonedCopies.add(offset)
  assignment.failedDeliveries.delete(offset)
  assignment.attempts.delete(offset)
  const state = settlement in stateOf ? stateOf[settlement as keyof typeof stateOf] : undefined
  if (state !== undefined) ledger.finish(partition, offset, state, assignment)
  // An undecodable record never reached a handler when its dead letter was not begun before the stop.
  if (settlement === "Abandoned" && failure !== undefined) assignment.failed.add(offset)
}
