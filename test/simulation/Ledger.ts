/**
 * What a history amounts to at one moment: records and their fate, assignments as each process sees them, who holds what at the broker, calls that are
 * running. Rules compare the next entry with it.
 */
import type { Entry, PartitionName } from "./History.ts"
import type { RecordPlan, Scenario } from "./Scenario.ts"

export type Fate = "open" | "done" | "dead-lettered" | "skipped"

export interface LedgerRecord {
  readonly plan: RecordPlan
  readonly binding: string
  readonly partition: PartitionName
  readonly offset: bigint
  fate: Fate
  /** Removed from the log, by retention or compaction. */
  removed: "no" | "retention" | "compaction"
  /** A connector has said that it is gone, or could not know that it ever was: deleted before the group committed anything. */
  accountedFor: boolean
}

export interface Call {
  readonly call: number
  readonly process: string
  readonly binding: string
  readonly partition: PartitionName
  readonly offsets: ReadonlyArray<bigint>
  readonly assignment: Assignment | undefined
}

/** A partition in the hands of one consumer, as its connector sees it. */
export interface Assignment {
  readonly process: string
  readonly consumer: number
  readonly binding: string
  readonly partition: PartitionName
  readonly generation: number
  readonly position: bigint
  state: "active" | "revoked" | "released" | "lost" | "closed"
  /** When it began to be given up: revoked, or its process was stopped. */
  endingSinceMillis: number | undefined
  drainTimedOut: boolean
  /** A copy of one of its records was refused. */
  publishFailed: boolean
  /** Highest offset that a handler was called with; below `position` when none was. */
  highest: bigint
  readonly finished: Set<bigint>
  /** Tried and not finished. */
  readonly failed: Set<bigint>
  /** Called and not finished. */
  readonly begun: Set<bigint>
  /** Given up by their delivery, and on their way to another topic: what is behind them may begin, and is not committed. */
  readonly leaving: Set<bigint>
  /** Finished by a copy in another topic, or behind one that was on its way there: nobody waits for their commit. */
  readonly notAwaited: Set<bigint>
}

interface CommitTraffic {
  inFlight: number
  lastFailureMillis: number
}

export class Ledger {
  readonly scenario: Scenario
  readonly records = new Map<PartitionName, Map<bigint, LedgerRecord>>()
  readonly logEnds = new Map<PartitionName, bigint>()
  /** Every assignment that there was, by process and partition; the newest last. */
  readonly assignments = new Map<string, Array<Assignment>>()
  readonly calls = new Map<number, Call>()
  readonly committed = new Map<PartitionName, bigint>()
  private readonly holdings = new Map<string, Set<PartitionName>>()
  /** When the broker told a member to give a partition up that it still has. */
  private readonly revokedAtMillis = new Map<string, number>()
  /** When a fault of the cluster struck last. */
  struckAtMillis = Number.NEGATIVE_INFINITY
  /** Bindings, by process, that an operator paused. */
  readonly paused = new Set<string>()
  /** Until when a binding of a process showed PAUSED, whoever held it; infinite while it does. */
  readonly pausedUntilMillis = new Map<string, number>()
  readonly stopping = new Map<string, number>()
  readonly stopped = new Set<string>()
  readonly traffic = new Map<string, CommitTraffic>()
  /** Processes by the member id that they have, or had last. */
  private readonly staticOwners = new Map<string, string>()

  constructor(scenario: Scenario) {
    this.scenario = scenario
  }

  record(partition: PartitionName, offset: bigint): LedgerRecord | undefined {
    return this.records.get(partition)?.get(offset)
  }

  ofProcess(process: string, partition: PartitionName): ReadonlyArray<Assignment> {
    return this.assignments.get(`${process} ${partition}`) ?? []
  }

  /** The assignment under which a consumer calls its handler now. */
  current(process: string, consumer: number, partition: PartitionName): Assignment | undefined {
    return this.ofProcess(process, partition).findLast((assignment) => assignment.consumer === consumer)
  }

  openCalls(process: string, partition: PartitionName): ReadonlyArray<Call> {
    return [...this.calls.values()].filter((call) => call.process === process && call.partition === partition)
  }

  /** What a member holds, by the broker's account. */
  held(member: { readonly groupId: string; readonly memberId: string }): Set<PartitionName> {
    return this.holdings.get(`${member.groupId} ${member.memberId}`) ?? new Set()
  }

  /** Since when a member has to give a partition up; undefined when it need not. */
  revokedSince(member: { readonly groupId: string; readonly memberId: string }, partition: PartitionName) {
    return this.revokedAtMillis.get(`${member.groupId} ${member.memberId} ${partition}`)
  }

  trafficOf(process: string, binding: string): CommitTraffic {
    const key = `${process} ${binding}`
    const known = this.traffic.get(key)
    if (known) return known
    const fresh = { inFlight: 0, lastFailureMillis: -1 }
    this.traffic.set(key, fresh)
    return fresh
  }

  /** `p1.2-7` is the seventh member, of the second life of process p1; `orders-host-0@p1-7` is a static member of p1. */
  processOfMember(memberId: string): string {
    const client = memberId.slice(0, memberId.lastIndexOf("-"))
    const at = client.lastIndexOf("@")
    return at < 0 ? client : (this.staticOwners.get(client.slice(at + 1)) ?? client)
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
        this.staticOwners.set(entry.process.slice(0, entry.process.indexOf(".")), entry.process)
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
        return
      case "Called":
        this.call(entry)
        return
      case "Returned":
        this.ret(entry)
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
      case "Broker":
        this.broker(entry)
        return
      case "Connector":
        this.connector(entry)
        return
    }
  }

  private publish(entry: Extract<Entry, { readonly _tag: "Published" }>): void {
    const log = this.records.get(entry.partition) ?? new Map<bigint, LedgerRecord>()
    this.records.set(entry.partition, log)
    for (const [index, plan] of entry.records.entries()) {
      const offset = entry.firstOffset + BigInt(index)
      log.set(offset, {
        plan,
        binding: entry.binding,
        partition: entry.partition,
        offset,
        fate: "open",
        removed: "no",
        accountedFor: false
      })
    }
    this.logEnds.set(entry.partition, entry.firstOffset + BigInt(entry.records.length))
  }

  private remove(partition: PartitionName, offset: bigint, by: "retention" | "compaction"): void {
    const record = this.record(partition, offset)
    // What compaction took was not there any more for retention to delete.
    if (record?.removed === "no") record.removed = by
  }

  private stop(process: string, atMillis: number): void {
    this.stopping.set(process, atMillis)
    for (const assignment of this.all(process)) assignment.endingSinceMillis ??= atMillis
  }

  private kill(process: string): void {
    for (const assignment of this.all(process)) if (assignment.state !== "released") assignment.state = "lost"
    for (const call of this.calls.values()) if (call.process === process) this.calls.delete(call.call)
    this.stopped.add(process)
  }

  private all(process: string): ReadonlyArray<Assignment> {
    return [...this.assignments.values()].flat().filter((assignment) => assignment.process === process)
  }

  private call(entry: Extract<Entry, { readonly _tag: "Called" }>): void {
    const assignment = this.current(entry.process, entry.consumer, entry.partition)
    const { call, process, binding, partition, offsets } = entry
    this.calls.set(call, { call, process, binding, partition, offsets, assignment })
    if (assignment === undefined) return
    for (const offset of offsets) {
      assignment.begun.add(offset)
      if (offset > assignment.highest) assignment.highest = offset
    }
  }

  private ret(entry: Extract<Entry, { readonly _tag: "Returned" }>): void {
    const call = this.calls.get(entry.call)
    if (call === undefined) return
    this.calls.delete(entry.call)
    for (const offset of entry.done) this.finish(call.partition, offset, "done", call.assignment)
    for (const offset of call.offsets) if (call.assignment?.begun.has(offset)) call.assignment.failed.add(offset)
  }

  private finish(partition: PartitionName, offset: bigint, fate: Fate, assignment: Assignment | undefined): void {
    const record = this.record(partition, offset)
    if (record && record.fate !== "done") record.fate = fate
    assignment?.begun.delete(offset)
    assignment?.failed.delete(offset)
    assignment?.finished.add(offset)
    const behindCopy = [...(assignment?.leaving ?? [])].some((before) => before < offset)
    if (fate === "dead-lettered" || behindCopy) assignment?.notAwaited.add(offset)
  }

  /**
   * A group without a committed offset begins at the first record that there is (`auto.offset.reset: earliest`). Nothing tells it what was there before.
   */
  private excuse(partition: PartitionName, position: bigint): void {
    for (const record of this.records.get(partition)?.values() ?? []) {
      if (record.offset < position && record.removed !== "no") record.accountedFor = true
    }
  }

  private broker({ entry, atMillis }: Extract<Entry, { readonly _tag: "Broker" }>): void {
    if (entry._tag === "Committed") {
      for (const { topic, partition, offset } of entry.offsets) this.committed.set(`${topic}/${partition}`, offset)
    } else if (entry._tag === "Assigned") {
      const held = this.held(entry)
      this.holdings.set(`${entry.groupId} ${entry.memberId}`, held)
      for (const partition of entry.partitions) held.add(partition)
    } else if (entry._tag === "Revoked") {
      for (const partition of entry.partitions) {
        this.revokedAtMillis.set(`${entry.groupId} ${entry.memberId} ${partition}`, atMillis)
      }
    } else if (entry._tag === "Released" || entry._tag === "Lost") {
      for (const partition of entry.partitions) {
        this.held(entry).delete(partition)
        this.revokedAtMillis.delete(`${entry.groupId} ${entry.memberId} ${partition}`)
      }
    } else if (entry._tag === "Struck") {
      this.struckAtMillis = atMillis
    } else if (entry._tag === "Left" || entry._tag === "Expired" || entry._tag === "Fenced") {
      this.holdings.delete(`${entry.groupId} ${entry.memberId}`)
    }
  }

  private connector({ process, event, atMillis }: Extract<Entry, { readonly _tag: "Connector" }>): void {
    if (event._tag === "SessionClosed") {
      for (const assignment of this.all(process)) {
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
      if (!this.committed.has(partition)) this.excuse(partition, event.position)
      const known = this.assignments.get(`${process} ${partition}`) ?? []
      this.assignments.set(`${process} ${partition}`, known)
      known.push({
        process,
        consumer: event.consumer,
        binding: event.binding,
        partition,
        generation: event.generation,
        position: event.position,
        state: "active",
        endingSinceMillis: this.stopping.get(process),
        drainTimedOut: false,
        publishFailed: false,
        highest: event.position - 1n,
        finished: new Set(),
        failed: new Set(),
        begun: new Set(),
        leaving: new Set(),
        notAwaited: new Set()
      })
      return
    }
    const assignment = this.current(process, event.consumer, partition)
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
      case "AttemptFailed":
        if (event.retryInMillis === undefined) assignment.leaving.add(event.record.offset)
        return
      case "PublishFailed":
        assignment.publishFailed = true
        return
      case "RecordsGone":
        for (const [offset, record] of this.records.get(partition) ?? []) {
          if (offset >= event.from && offset < event.to) record.accountedFor = true
        }
        return
      case "Settled":
        assignment.leaving.delete(event.record.offset)
        if (event.settlement === "DeadLettered")
          this.finish(partition, event.record.offset, "dead-lettered", assignment)
        if (event.settlement === "Skipped") this.finish(partition, event.record.offset, "skipped", assignment)
        // A record that cannot be read, and whose dead letter was not begun before the stop, never saw a handler.
        if (event.settlement === "Unfinished" && event.failure !== undefined) assignment.failed.add(event.record.offset)
        return
    }
  }
}

/** Nothing is missing when nobody handles it: finished, or not there any more. */
export const isSettled = (record: LedgerRecord): boolean => record.fate !== "open" || record.removed !== "no"
