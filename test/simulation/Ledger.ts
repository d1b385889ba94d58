/**
 * The state of a history at one moment: records and their outcomes, assignments as each process and as the broker sees them, calls that are
 * running. Rules compare the next entry with it.
 */
import { Assignments } from "./Assignments.ts"
import type { Assignment, Call, FailedDelivery, RecordState } from "./accounts.ts"
import { Breakers } from "./Breakers.ts"
import type { Entry, PartitionName } from "./History.ts"
import { Logs } from "./Logs.ts"
import { Members } from "./Members.ts"
import type { Scenario } from "./Scenario.ts"
import { Sources } from "./Sources.ts"
import * as Transactions from "./transactions.ts"

interface CommitTraffic {
  inFlight: number
  lastFailureMillis: number
}

type ConnectorEntry = Extract<Entry, { readonly _tag: "Connector" }>
/** An event that names a partition. */
type PartitionEvent = Extract<ConnectorEntry["event"], { readonly partition: number }>

export class Ledger {
  readonly scenario: Scenario
  readonly logs: Logs
  readonly assignments = new Assignments()
  readonly members = new Members()
  readonly sources: Sources
  readonly calls = new Map<number, Call>()
  readonly breakers = new Breakers()
  /** The records that the last event of a binding in a process gave up. */
  private lastFailedDelivery: FailedDelivery | undefined
  /** When a fault of the cluster struck last. */
  lastFaultMillis = Number.NEGATIVE_INFINITY
  /** Bindings, by process, that an operator paused. */
  readonly paused = new Set<string>()
  /** Until when a binding of a process showed PAUSED, whoever held it; infinite while it does. */
  readonly pausedUntilMillis = new Map<string, number>()
  readonly stopping = new Map<string, number>()
  readonly stopped = new Set<string>()
  readonly traffic = new Map<string, CommitTraffic>()

  constructor(scenario: Scenario) {
    this.scenario = scenario
    this.logs = new Logs(scenario)
    this.sources = new Sources(this.logs.copiesById, this.assignments)
  }

  openCalls(process: string, partition: PartitionName): ReadonlyArray<Call> {
    return [...this.calls.values()].filter((call) => call.process === process && call.partition === partition)
  }

  trafficOf(process: string, binding: string): CommitTraffic {
    const key = `${process} ${binding}`
    const known = this.traffic.get(key)
    if (known) return known
    const fresh = { inFlight: 0, lastFailureMillis: -1 }
    this.traffic.set(key, fresh)
    return fresh
  }

  apply(entry: Entry): void {
    switch (entry._tag) {
      case "Published":
        this.logs.publish(entry)
        return
      case "LogEnd":
        this.logs.logEnds.set(entry.partition, entry.logEnd)
        return
      case "Compacted":
        for (const offset of entry.offsets) this.logs.remove(entry.partition, offset, "compaction")
        return
      case "Truncated":
        this.logs.truncate(entry.partition, entry.before)
        return
      case "ProcessStarted":
        this.members.started(entry.process)
        return
      case "ProcessStopping":
        this.stop(entry.process, entry.atMillis)
        return
      case "ProcessStopped":
        this.stopped.add(entry.process)
        return
      case "ProcessKilled":
        this.kill(entry.process)
        return
      case "Paused":
        this.paused.add(`${entry.process} ${entry.binding}`)
        return
      case "Resumed":
        this.paused.delete(`${entry.process} ${entry.binding}`)
        this.breakers.resumed(entry)
        return
      case "Called":
        this.call(entry)
        return
      case "Returned":
        this.returned(entry)
        return
      case "CommitSent":
        this.trafficOf(entry.process, entry.groupId).inFlight++
        return
      case "CommitAccepted":
      case "CommitFailed": {
        const traffic = this.trafficOf(entry.process, entry.groupId)
        traffic.inFlight--
        if (entry._tag === "CommitFailed") traffic.lastFailureMillis = entry.atMillis
        return
      }
      case "Sent":
        this.sources.sent(entry.process, entry.copy, entry.number)
        return
      case "SendFailed":
        this.sources.failed(entry.process, entry.number)
        return
      case "Stored":
        for (const { offset, copy, isReadable } of entry.copies) {
          if (isReadable) this.logs.store(entry.partition, offset, copy, entry.atMillis)
        }
        return
      case "Broker":
        this.broker(entry)
        return
      case "Connector":
        this.connector(entry)
        return
    }
  }

  private stop(process: string, atMillis: number): void {
    this.stopping.set(process, atMillis)
    for (const assignment of this.assignments.ofProcess(process)) assignment.endingSinceMillis ??= atMillis
  }

  private kill(process: string): void {
    for (const assignment of this.assignments.ofProcess(process))
      if (assignment.state !== "released") assignment.state = "lost"
    for (const call of this.calls.values()) if (call.process === process) this.calls.delete(call.call)
    this.stopped.add(process)
  }

  private call(entry: Extract<Entry, { readonly _tag: "Called" }>): void {
    this.breakers.called(entry)
    const assignment = this.assignments.current(entry.process, entry.consumer, entry.partition)
    const { call, process, binding, partition, offsets } = entry
    this.calls.set(call, { call, process, binding, partition, offsets, assignment })
    if (assignment === undefined) return
    for (const offset of offsets) {
      assignment.begun.add(offset)
      if (offset > assignment.highest) assignment.highest = offset
    }
  }

  private returned(entry: Extract<Entry, { readonly _tag: "Returned" }>): void {
    // This call opens the breaker.
    this.lastFailedDelivery = undefined
    const call = this.calls.get(entry.call)
    if (call === undefined) return
    this.calls.delete(entry.call)
    const cut = entry.outcome === "interrupted"
    this.breakers.returned(entry.process, call.binding, call.call, call.partition, call.offsets[0], cut)
    const isTransactional = this.logs.planOf(call.binding).listener === "transactional"
    // A transaction counts when it is committed, and one that fails takes along what was done in it.
    if (isTransactional && entry.outcome !== "done") call.assignment?.pending.clear()
    for (const offset of entry.done) {
      if (isTransactional) call.assignment?.pending.add(offset)
      else this.finish(call.partition, offset, "done", call.assignment)
    }
    if (entry.outcome !== "interrupted") {
      const { attempts } = call.assignment ?? {}
      for (const offset of call.offsets) attempts?.set(offset, (attempts.get(offset) ?? 0) + 1)
    }
    for (const offset of call.offsets) if (call.assignment?.begun.has(offset)) call.assignment.failed.add(offset)
  }

  private finish(
    partition: PartitionName,
    offset: bigint,
    state: RecordState,
    assignment: Assignment | undefined
  ): void {
    const record = this.logs.record(partition, offset)
    if (record && record.state !== "done") record.state = state
    assignment?.begun.delete(offset)
    assignment?.failed.delete(offset)
    assignment?.finished.add(offset)
    const behindCopy = [...(assignment?.failedDeliveries.keys() ?? [])].some((before) => before < offset)
    if (state === "dead-lettered" || state === "routed" || behindCopy) assignment?.notAwaited.add(offset)
  }

  private commit(partition: PartitionName, offset: bigint): void {
    const open = this.logs.openUpTo(partition, offset)
    const assignment = Transactions.assignmentOf(this, partition, open)
    this.logs.committed.set(partition, offset)
    for (const record of open) {
      const state = assignment && Transactions.stateIn(this, record, assignment)
      if (state !== undefined) this.finish(partition, record.offset, state, assignment)
    }
  }

  private broker(entry: Extract<Entry, { readonly _tag: "Broker" }>): void {
    this.members.broker(entry)
    const { entry: what, atMillis } = entry
    if (what._tag === "FaultInjected") this.lastFaultMillis = atMillis
    if (what._tag !== "Committed") return
    for (const { topic, partition, offset } of what.offsets) this.commit(`${topic}/${partition}`, offset)
  }

  private connector(entry: ConnectorEntry): void {
    const { process, event, atMillis, fiber } = entry
    this.breakers.connector(entry)
    // A given up record is reported to the breaker at once, and the breaker opens at once.
    const given = this.lastFailedDelivery
    if (event._tag === "BreakerChanged" && event.to === "OPEN" && given !== undefined && given.fiber === fiber) {
      given.breaker = "opened the breaker"
    }
    this.lastFailedDelivery = undefined
    if (event._tag === "SessionClosed") {
      for (const assignment of this.assignments.ofProcess(process)) {
        const ofSession = assignment.consumer === event.consumer && assignment.binding === event.binding
        if (ofSession && (assignment.state === "active" || assignment.state === "revoked")) assignment.state = "closed"
      }
      return
    }
    if (event._tag === "StateChanged") {
      const key = `${process} ${event.binding}`
      if (event.to === "PAUSED") this.pausedUntilMillis.set(key, Number.POSITIVE_INFINITY)
      if (event.from === "PAUSED" && event.to === "RUNNING") this.pausedUntilMillis.set(key, atMillis)
      return
    }
    if (!("partition" in event)) return
    const partition: PartitionName = `${event.topic}/${event.partition}`
    if (event._tag === "PartitionAssigned") {
      if (!this.logs.committed.has(partition)) this.logs.markDeletedBeforeStart(partition, event.position)
      this.assignments.begin(process, event, this.stopping.get(process))
      return
    }
    const assignment = this.assignments.current(process, event.consumer, partition)
    if (assignment !== undefined) this.ofAssignment(entry, event, assignment)
  }

  private ofAssignment(
    { process, atMillis, fiber }: ConnectorEntry,
    event: PartitionEvent,
    assignment: Assignment
  ): void {
    const partition: PartitionName = `${event.topic}/${event.partition}`
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
        const { state } = this.breakers.of(process, event.binding)
        const breaker = state === "OPEN" ? "came while the breaker was open" : undefined
        this.lastFailedDelivery = { attempts, failure, atMillis, fiber, budgetReached, breaker }
        assignment.failedDeliveries.set(event.record.offset, this.lastFailedDelivery)
        assignment.sent.delete(event.record.offset)
        return
      }
      case "PublishFailed":
        assignment.publishFailed = true
        return
      case "RecordsGone":
        this.logs.markReportedGone(partition, event.from, event.to)
        return
      case "Settled":
        if (event.target !== undefined)
          this.sources.reassign(assignment, this.logs.record(partition, event.record.offset))
        assignment.failedDeliveries.delete(event.record.offset)
        assignment.attempts.delete(event.record.offset)
        if (event.settlement === "Routed") this.finish(partition, event.record.offset, "routed", assignment)
        if (event.settlement === "DeadLettered")
          this.finish(partition, event.record.offset, "dead-lettered", assignment)
        if (event.settlement === "Skipped") this.finish(partition, event.record.offset, "skipped", assignment)
        // A record that cannot be read, and whose dead letter was not begun before the stop, never saw a handler.
        if (event.settlement === "Abandoned" && event.failure !== undefined) assignment.failed.add(event.record.offset)
        return
    }
  }
}
