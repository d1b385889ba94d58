/**
 * The state of a history at one moment: records and their outcomes, assignments as each process and as the broker sees them, calls that are
 * running. Rules compare the next entry with it.
 */
import { Assignments } from "./Assignments.ts"
import type { Assignment, Call, FailedDelivery, LedgerRecord, RecordState } from "./accounts.ts"
import { Breakers } from "./Breakers.ts"
import type { Copy } from "./copies.ts"
import * as Copies from "./copies.ts"
import type { Entry, PartitionName } from "./History.ts"
import { Members } from "./Members.ts"
import { deadLetterTopic } from "./retries.ts"
import type { BindingPlan, Scenario } from "./Scenario.ts"
import { Sources } from "./Sources.ts"
import { beginMillis } from "./Timeline.ts"

interface CommitTraffic {
  inFlight: number
  lastFailureMillis: number
}

export class Ledger {
  readonly scenario: Scenario
  readonly records = new Map<PartitionName, Map<bigint, LedgerRecord>>()
  readonly logEnds = new Map<PartitionName, bigint>()
  /** Every record that there is of an id: the first one, and its copies in retry topics. */
  readonly copiesById = new Map<string, Array<LedgerRecord>>()
  readonly assignments = new Assignments()
  readonly members = new Members()
  readonly sources = new Sources(this.copiesById, this.assignments)
  readonly calls = new Map<number, Call>()
  readonly breakers = new Breakers()
  /** The records that the last event of a binding in a process gave up. */
  private lastFailedDelivery: FailedDelivery | undefined
  readonly committed = new Map<PartitionName, bigint>()
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
  }

  record(partition: PartitionName, offset: bigint): LedgerRecord | undefined {
    return this.records.get(partition)?.get(offset)
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
        this.publish(entry)
        return
      case "LogEnd":
        this.logEnds.set(entry.partition, entry.logEnd)
        return
      case "Compacted":
        for (const offset of entry.offsets) this.remove(entry.partition, offset, "compaction")
        return
      case "Truncated":
        for (const offset of this.records.get(entry.partition)?.keys() ?? []) {
          if (offset < entry.before) this.remove(entry.partition, offset, "retention")
        }
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
          if (isReadable) this.store(entry.partition, offset, copy, entry.atMillis)
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

  private publish(entry: Extract<Entry, { readonly _tag: "Published" }>): void {
    const { binding, partition } = entry
    for (const [index, plan] of entry.records.entries()) {
      const offset = entry.firstOffset + BigInt(index)
      const fresh = {
        tierAttempt: { tier: 0, attempt: 1 },
        totalAttempts: 0,
        firstFailureMillis: undefined,
        storedMillis: 0,
        dueMillis: 0
      }
      this.add({ ...fresh, plan, binding, partition, offset, state: "open", removed: "no", reportedGone: false })
    }
    this.logEnds.set(partition, entry.firstOffset + BigInt(entry.records.length))
  }

  /** The rules checked its headers when it was sent. */
  private store(partition: PartitionName, offset: bigint, copy: Copy, storedMillis: number): void {
    const [first] = this.copiesById.get(copy.id) ?? []
    const plan = first && this.planOf(first.binding)
    if (first === undefined || plan === undefined || copy.topic === deadLetterTopic(plan)) return
    const tier = Copies.numberOf(copy, "retry-tier")
    const delayMillis = plan.tiers[tier - 1]?.delayMillis ?? 0
    this.add({
      ...{ plan: first.plan, binding: first.binding, partition, offset },
      tierAttempt: { tier, attempt: Copies.numberOf(copy, "retry-attempt") },
      totalAttempts: Copies.numberOf(copy, "total-attempts"),
      firstFailureMillis: Copies.numberOf(copy, "first-failure-timestamp") - beginMillis,
      storedMillis,
      dueMillis: Copies.numberOf(copy, "retry-timestamp") - beginMillis + delayMillis,
      ...{ state: "open", removed: "no", reportedGone: false }
    })
    const end = this.logEnds.get(partition) ?? 0n
    if (offset >= end) this.logEnds.set(partition, offset + 1n)
  }

  private add(record: LedgerRecord): void {
    const log = this.records.get(record.partition) ?? new Map<bigint, LedgerRecord>()
    this.records.set(record.partition, log.set(record.offset, record))
    const copies = this.copiesById.get(record.plan.id)
    if (copies === undefined) this.copiesById.set(record.plan.id, [record])
    else copies.push(record)
  }

  /** Whether transactions write there: their markers take offsets. */
  hasMarkers(partition: PartitionName): boolean {
    const [record] = this.records.get(partition)?.values() ?? []
    return (
      record !== undefined && record.tierAttempt.tier > 0 && this.planOf(record.binding).listener === "transactional"
    )
  }

  planOf(binding: string): BindingPlan {
    const plan = this.scenario.bindings.find((candidate) => candidate.name === binding)
    if (plan === undefined) throw new Error(`There is no binding '${binding}' in this scenario.`)
    return plan
  }

  private remove(partition: PartitionName, offset: bigint, by: "retention" | "compaction"): void {
    const record = this.record(partition, offset)
    // Retention cannot delete records that compaction had removed.
    if (record?.removed === "no") record.removed = by
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
    const isTransactional = this.planOf(call.binding).listener === "transactional"
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
    const record = this.record(partition, offset)
    if (record && record.state !== "done") record.state = state
    assignment?.begun.delete(offset)
    assignment?.failed.delete(offset)
    assignment?.finished.add(offset)
    const behindCopy = [...(assignment?.failedDeliveries.keys() ?? [])].some((before) => before < offset)
    if (state === "dead-lettered" || state === "routed" || behindCopy) assignment?.notAwaited.add(offset)
  }

  /**
   * A group without a committed offset begins at the first record that there is (`auto.offset.reset: earliest`). Nothing tells it what was there before.
   */
  private markDeletedBeforeStart(partition: PartitionName, position: bigint): void {
    for (const record of this.records.get(partition)?.values() ?? []) {
      if (record.offset < position && record.removed !== "no") record.reportedGone = true
    }
  }

  private commit(partition: PartitionName, offset: bigint): void {
    const open = this.openUpTo(partition, offset)
    const assignment = this.assignmentOfTransaction(partition, open)
    this.committed.set(partition, offset)
    for (const record of open) {
      const state = assignment && this.stateInTransaction(record, assignment)
      if (state !== undefined) this.finish(partition, record.offset, state, assignment)
    }
  }

  /** Records without a fate that a commit up to an offset is about. */
  openUpTo(partition: PartitionName, offset: bigint): ReadonlyArray<LedgerRecord> {
    const from = this.committed.get(partition) ?? 0n
    return [...(this.records.get(partition)?.values() ?? [])].filter(
      (record) => record.state === "open" && record.offset >= from && record.offset < offset
    )
  }

  /** Whose transaction it is that commits these records: what an assignment did before it came to nothing unless it did all that are still there. */
  assignmentOfTransaction(partition: PartitionName, open: ReadonlyArray<LedgerRecord>): Assignment | undefined {
    const stillThere = open.filter(({ removed }) => removed === "no")
    const newestFirst = this.assignments.newestFirst(partition)
    const hasFate = (assignment: Assignment) => (record: LedgerRecord) =>
      this.stateInTransaction(record, assignment) !== undefined
    if (stillThere.length > 0) return newestFirst.find((assignment) => stillThere.every(hasFate(assignment)))
    // Every record of it was deleted since it was read.
    const active = newestFirst.find((assignment) => assignment.state === "active" && open.some(hasFate(assignment)))
    return active ?? newestFirst[0]
  }

  /** The outcome of a record in the transaction of an assignment. */
  private stateInTransaction({ offset, binding, plan }: LedgerRecord, assignment: Assignment): RecordState | undefined {
    if (this.planOf(binding).listener !== "transactional") return undefined
    if (assignment.pending.has(offset)) return "done"
    if (!assignment.failedDeliveries.has(offset)) return undefined
    if (assignment.sent.has(offset)) return "routed"
    return plan.behaviour._tag === "Ignorable" ? "skipped" : undefined
  }

  private broker(entry: Extract<Entry, { readonly _tag: "Broker" }>): void {
    this.members.broker(entry)
    const { entry: what, atMillis } = entry
    if (what._tag === "FaultInjected") this.lastFaultMillis = atMillis
    if (what._tag !== "Committed") return
    for (const { topic, partition, offset } of what.offsets) this.commit(`${topic}/${partition}`, offset)
  }

  private connector(entry: Extract<Entry, { readonly _tag: "Connector" }>): void {
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
      if (!this.committed.has(partition)) this.markDeletedBeforeStart(partition, event.position)
      this.assignments.begin(process, event, this.stopping.get(process))
      return
    }
    const assignment = this.assignments.current(process, event.consumer, partition)
    if (assignment === undefined) return
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
        for (const [offset, record] of this.records.get(partition) ?? []) {
          if (offset >= event.from && offset < event.to) record.reportedGone = true
        }
        return
      case "Settled":
        if (event.target !== undefined) this.sources.reassign(assignment, this.record(partition, event.record.offset))
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
