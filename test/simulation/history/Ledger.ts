/**
 * The state of a history at one moment: records and their outcomes, assignments as each process and as the broker sees them, calls that are
 * running. Rules compare the next entry with it.
 */

import { type BindingPlan, planOf, type Scenario } from "../scenario/Scenario.ts"
import { Assignments } from "./Assignments.ts"
import type { Assignment, Call, FailedDelivery, LedgerRecord, RecordState } from "./accounts.ts"
import { Breakers } from "./Breakers.ts"
import * as FinishedOffsets from "./FinishedOffsets.ts"
import type { Entry, Output, PartitionName } from "./History.ts"
import { Members } from "./Members.ts"
import { RecordLogs } from "./RecordLogs.ts"
import { Sources } from "./Sources.ts"

/** The commits of one process for one group. */
interface CommitTraffic {
  inFlight: number
  lastFailureMillis: number
  /** Times at which the requests were sent that have no answer yet, by their fibers. */
  readonly sentMillis: Map<number | undefined, number>
  /** The requests that were answered while the process was stopping. */
  readonly answeredInStop: Array<{ readonly sentMillis: number; readonly answeredMillis: number }>
}

export class Ledger {
  readonly scenario: Scenario
  readonly logs: RecordLogs
  readonly assignments = new Assignments()
  readonly members = new Members()
  readonly sources: Sources
  readonly calls = new Map<number, Call>()
  readonly breakers = new Breakers()
  /** The delivery that the previous event reported as failed. */
  lastFailedDelivery: FailedDelivery | undefined
  readonly committed = new Map<PartitionName, bigint>()
  /** Offsets that the last commit of a partition tells of: they are finished behind it. */
  readonly told = new Map<PartitionName, ReadonlySet<bigint>>()
  /** Time of the last fault of the cluster. */
  lastFaultMillis = Number.NEGATIVE_INFINITY
  /** Bindings, by process, that an operator paused. */
  readonly paused = new Set<string>()
  /** Time until which a binding of a process was PAUSED for any reason; infinite while it is. */
  readonly pausedUntilMillis = new Map<string, number>()
  readonly stopping = new Map<string, number>()
  readonly stopped = new Set<string>()
  readonly traffic = new Map<string, CommitTraffic>()
  /** The newest observation of a transactional binding's output. */
  readonly observed = new Map<string, ReadonlyArray<Output>>()

  constructor(scenario: Scenario) {
    this.scenario = scenario
    this.logs = new RecordLogs(scenario)
    this.sources = new Sources(this.logs.copiesById, this.assignments)
  }

  openCalls(process: string, partition: PartitionName): ReadonlyArray<Call> {
    return [...this.calls.values()].filter((call) => call.process === process && call.partition === partition)
  }

  trafficOf(process: string, binding: string): CommitTraffic {
    const key = `${process} ${binding}`
    const known = this.traffic.get(key)
    if (known) return known
    const fresh: CommitTraffic = { inFlight: 0, lastFailureMillis: -1, sentMillis: new Map(), answeredInStop: [] }
    this.traffic.set(key, fresh)
    return fresh
  }

  planOf(binding: string): BindingPlan {
    return planOf(this.scenario, binding)
  }

  stop(process: string, atMillis: number): void {
    this.stopping.set(process, atMillis)
    for (const assignment of this.assignments.ofProcess(process)) assignment.endingSinceMillis ??= atMillis
  }

  kill(process: string): void {
    for (const assignment of this.assignments.ofProcess(process))
      if (assignment.state !== "released") assignment.state = "lost"
    for (const call of this.calls.values()) if (call.process === process) this.calls.delete(call.call)
    this.stopped.add(process)
  }

  call(entry: Extract<Entry, { readonly _tag: "Called" }>): void {
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

  returned(entry: Extract<Entry, { readonly _tag: "Returned" }>): void {
    // A breaker that opens now opens because of this call.
    this.lastFailedDelivery = undefined
    const call = this.calls.get(entry.call)
    if (call === undefined) return
    this.calls.delete(entry.call)
    const cut = entry.outcome === "interrupted"
    this.breakers.returned(entry.process, call.binding, call.call, call.partition, call.offsets[0], cut)
    const isTransactional = this.planOf(call.binding).listener === "transactional"
    // A transaction counts when it commits. A failed transaction undoes everything in it.
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

  finish(partition: PartitionName, offset: bigint, state: RecordState, assignment: Assignment | undefined): void {
    const record = this.logs.record(partition, offset)
    if (record && record.state !== "done") record.state = state
    assignment?.begun.delete(offset)
    assignment?.failed.delete(offset)
    assignment?.finished.add(offset)
  }

  commit(partition: PartitionName, offset: bigint, metadata: string): void {
    this.told.set(partition, FinishedOffsets.of(metadata))
    const open = this.openUpTo(partition, offset)
    const assignment = this.assignmentOfTransaction(partition, open)
    this.committed.set(partition, offset)
    for (const record of open) {
      const state = assignment && this.stateInTransaction(record, assignment)
      if (state !== undefined) this.finish(partition, record.offset, state, assignment)
    }
  }

  /** Open records that a commit up to an offset covers. */
  openUpTo(partition: PartitionName, offset: bigint): ReadonlyArray<LedgerRecord> {
    const from = this.committed.get(partition) ?? 0n
    return [...(this.logs.byPartition.get(partition)?.values() ?? [])].filter(
      (record) => record.state === "open" && record.offset >= from && record.offset < offset
    )
  }

  /** The assignment whose transaction commits these records. An earlier assignment comes to nothing unless it processed every record that still exists. */
  assignmentOfTransaction(partition: PartitionName, open: ReadonlyArray<LedgerRecord>): Assignment | undefined {
    const stillThere = open.filter(({ removed }) => removed === "no")
    const newestFirst = this.assignments.newestFirst(partition)
    const hasState = (assignment: Assignment) => (record: LedgerRecord) =>
      this.stateInTransaction(record, assignment) !== undefined
    if (stillThere.length > 0) return newestFirst.find((assignment) => stillThere.every(hasState(assignment)))
    // Every record of the transaction was deleted after it was read.
    const active = newestFirst.find((assignment) => assignment.state === "active" && open.some(hasState(assignment)))
    return active ?? newestFirst[0]
  }

  /** The state of a record in the transaction of an assignment. */
  private stateInTransaction({ offset, binding, plan }: LedgerRecord, assignment: Assignment): RecordState | undefined {
    if (this.planOf(binding).listener !== "transactional") return undefined
    if (assignment.pending.has(offset)) return "done"
    if (!assignment.failedDeliveries.has(offset)) return undefined
    if (assignment.sent.has(offset)) return "routed"
    return plan.behaviour._tag === "Ignorable" ? "skipped" : undefined
  }

  broker(entry: Extract<Entry, { readonly _tag: "Broker" }>): void {
    this.members.broker(entry)
    const { entry: what, atMillis } = entry
    if (what._tag === "FaultInjected") this.lastFaultMillis = atMillis
    if (what._tag !== "Committed") return
    for (const { topic, partition, offset, metadata } of what.offsets) {
      this.commit(`${topic}/${partition}`, offset, metadata)
    }
  }
}
