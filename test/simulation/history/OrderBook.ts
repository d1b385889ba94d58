/**
 * The state of a history as order per key sees it: what is done of each key and in which order, the locks in the retry topics, and what the group has committed.
 */
import { isCalm } from "../scenario/order.ts"
import { deadLetterTopics, mainTopics, retryTopics, topicOf } from "../scenario/retries.ts"
import type { BindingPlan, RecordPlan, Scenario } from "../scenario/Scenario.ts"
import type { Entry, PartitionName, StoredLock } from "./History.ts"
import { Members } from "./Members.ts"
import type { OrderKey, OrderRecord } from "./orderRecords.ts"

interface Commit {
  readonly offset: bigint
  readonly epoch: number
}

interface Running {
  readonly process: string
  /** Whether a retry topic has delivered the record. */
  readonly isRetry: boolean
  /** Whether its partition was lost, or given up, while it ran. */
  isLate: boolean
  readonly records: ReadonlyArray<OrderRecord>
}

/** A call of a process that was killed. */
const lateCall: Running = { process: "", isRetry: false, isLate: false, records: [] }

export class OrderBook {
  readonly scenario: Scenario
  readonly plan: BindingPlan
  readonly isCalm: boolean
  readonly byId = new Map<string, OrderRecord>()
  /** By main partition, then by key. */
  readonly keys = new Map<PartitionName, Map<string, OrderKey>>()
  readonly keyless: Array<OrderRecord> = []
  readonly locks = new Map<PartitionName, Array<StoredLock>>()
  /** By record: where its copies are. */
  readonly copies = new Map<string, Array<{ readonly partition: PartitionName; readonly offset: bigint }>>()
  readonly committed = new Map<PartitionName, Commit>()
  readonly running = new Map<number, Running>()
  /** By record: its dead letter that was sent last. */
  readonly letters = new Map<string, { isLate: boolean }>()
  /** The event that lets records be handled twice; undefined while there was none. */
  disturbance: string | undefined
  /** The process that appended last. */
  appender = ""
  readonly #members = new Members()
  /** By partition: the process that the broker takes for its owner. */
  readonly #owners = new Map<PartitionName, { readonly member: string; readonly process: string }>()
  /** Processes that stop, or are asked for a partition. */
  readonly #givingUp = new Set<string>()
  readonly #paused = new Set<string>()
  readonly #letters: ReadonlySet<string>
  readonly #tiers: ReadonlySet<string>

  constructor(scenario: Scenario) {
    this.scenario = scenario
    this.plan = scenario.bindings[0]!
    this.isCalm = isCalm(scenario)
    this.#letters = new Set(deadLetterTopics(this.plan))
    this.#tiers = new Set(retryTopics(this.plan))
    if (scenario.faults.faults.length > 0) this.disturbance = "faults of the broker"
  }

  isLetter(partition: PartitionName): boolean {
    return this.#letters.has(topicOf(partition))
  }

  /** Whether a process handles what the broker has given to somebody else. */
  isZombie(process: string, { partition }: OrderRecord): boolean {
    return this.#owners.get(partition)?.process !== process
  }

  /** Whether the dead letter that has just come is of a former owner. */
  isLateLetter(record: OrderRecord): boolean {
    return this.letters.get(record.plan.id)?.isLate === true || this.isZombie(this.appender, record)
  }

  /** The retry partitions of a main partition. */
  tiersOf(partition: PartitionName): ReadonlyArray<PartitionName> {
    const main = topicOf(partition)
    const topics = retryTopics({ ...this.plan, topic: main, otherTopics: [] })
    return topics.map((topic) => `${topic}${partition.slice(main.length)}`)
  }

  apply(entry: Entry): void {
    switch (entry._tag) {
      case "Published":
        for (const [index, plan] of entry.records.entries()) this.#add(entry, plan, index)
        return
      case "Called": {
        const records = entry.ids.flatMap((id) => this.byId.get(id) ?? [])
        this.running.set(entry.call, {
          ...{ process: entry.process, records, isRetry: this.#isRetry(topicOf(entry.partition)) },
          isLate: records.some((record) => this.isZombie(entry.process, record))
        })
        return
      }
      case "Returned": {
        const { records, isLate, isRetry } = this.running.get(entry.call) ?? lateCall
        this.running.delete(entry.call)
        if (entry.outcome === "done")
          for (const record of records) this.#finish(record, isLate || this.isZombie(entry.process, record))
        else if (this.#givingUp.has(entry.process) && !isRetry)
          this.#disturb("a failure while the partition was given up")
        return
      }
      case "Sent": {
        const record = this.byId.get(entry.copy.id)
        if (record !== undefined && this.#letters.has(entry.copy.topic))
          this.letters.set(entry.copy.id, { isLate: this.isZombie(entry.process, record) })
        return
      }
      case "Stored":
        for (const { copy, offset } of entry.copies) {
          const record = this.byId.get(copy.id)
          if (record === undefined) continue
          if (this.isLetter(entry.partition)) this.#finish(record, this.isLateLetter(record))
          else this.#note(copy.id, entry.partition, offset)
        }
        return
      case "Locked":
        this.locks.set(entry.partition, [...(this.locks.get(entry.partition) ?? []), ...entry.locks])
        return
      case "Connector":
        this.#event(entry)
        return
      case "Broker":
        this.#broker(entry)
        return
      default:
        this.#operation(entry)
        return
    }
  }

  #add({ partition, firstOffset, atMillis }: Extract<Entry, { _tag: "Published" }>, plan: RecordPlan, index: number) {
    const offset = firstOffset + BigInt(index)
    const of = plan.key === null ? undefined : this.#key(partition, plan.key)
    const at = { plan, partition, offset, of, publishedMillis: atMillis, isDone: false }
    const record: OrderRecord = { ...at, index: of?.records.length ?? 0 }
    this.byId.set(plan.id, record)
    if (of === undefined) this.keyless.push(record)
    else of.records.push(record)
  }

  #key(partition: PartitionName, name: string): OrderKey {
    const keys = this.keys.get(partition) ?? new Map<string, OrderKey>()
    this.keys.set(partition, keys)
    const key = keys.get(name) ?? { name: `${name} of ${partition}`, records: [], last: -1, zombie: -1 }
    keys.set(name, key)
    return key
  }

  #note(id: string, partition: PartitionName, offset: bigint): void {
    this.copies.set(id, [...(this.copies.get(id) ?? []), { partition, offset }])
  }

  #finish(record: OrderRecord, isLate: boolean): void {
    const { of: key, index } = record
    record.isDone = true
    if (key === undefined) return
    if (isLate) key.zombie = Math.max(key.zombie, index)
    else {
      key.last = index
      if (index > key.zombie) key.zombie = -1
    }
  }

  /** Keys that are done behind a record of a retry topic move their locks: what is left of it lets nothing be handled twice. */
  #isRetry(topic: string): boolean {
    return this.#tiers.has(topic)
  }

  #disturb(what: string): void {
    this.disturbance ??= what
  }

  #event({ event, process }: Extract<Entry, { _tag: "Connector" }>): void {
    switch (event._tag) {
      case "Settled": {
        const id = new TextDecoder().decode(event.record.value ?? undefined).replace(/^!/, "")
        const record = this.byId.get(id)
        if (event.settlement === "Skipped" && record !== undefined) this.#finish(record, this.isZombie(process, record))
        if (event.settlement === "Abandoned" && !this.#isRetry(event.record.topic))
          this.#disturb("a record that was left for the next owner")
        return
      }
      case "DrainTimedOut":
        this.#disturb("a drain that took too long")
        return
      case "PartitionRevoked":
        this.#givingUp.add(process)
        if (this.#paused.size > 0) this.#disturb("a pause while a partition was given up")
        return
      case "PartitionReleased":
        this.#givingUp.delete(process)
        return
      case "StateChanged":
        if (event.to === "PAUSED") this.#pause(process, process)
        else this.#paused.delete(process)
        return
      case "BreakerChanged":
        if (event.to === "CLOSED") this.#paused.delete(`${process} breaker`)
        else this.#pause(process, `${process} breaker`)
    }
  }

  #pause(process: string, what: string): void {
    this.#paused.add(what)
    if (this.#givingUp.has(process)) this.#disturb("a pause while a partition was given up")
  }

  #operation(entry: Entry): void {
    switch (entry._tag) {
      case "ProcessStarted":
        this.#members.started(entry.process)
        return
      case "ProcessStopping":
        this.#givingUp.add(entry.process)
        if (this.#paused.size > 0) this.#disturb("a pause while a process stopped")
        return
      case "ProcessKilled":
        for (const [call, { process }] of this.running) if (process === entry.process) this.running.delete(call)
        this.#disturb("a crash")
        return
      case "Paused":
        this.#pause(entry.process, entry.process)
        return
      case "Resumed":
        this.#paused.delete(entry.process)
    }
  }

  #broker(brokerEntry: Extract<Entry, { _tag: "Broker" }>): void {
    const { entry } = brokerEntry
    switch (entry._tag) {
      case "Appended":
        this.appender = entry.clientId
        return
      case "Committed":
        for (const { topic, partition, offset, metadata } of entry.offsets)
          this.committed.set(`${topic}/${partition}`, { offset, epoch: epochOf(metadata) })
        return
      case "FaultInjected":
        return
    }
    this.#members.broker(brokerEntry)
    const member = `${entry.groupId} ${entry.memberId}`
    const process = this.#members.processOf(entry.memberId)
    switch (entry._tag) {
      case "Assigned":
        for (const partition of entry.partitions) this.#owners.set(partition, { member, process })
        return
      case "Lost":
        this.#disturb("a lost partition")
        this.#leave(member, entry.partitions)
        return
      case "Released":
        this.#leave(member, entry.partitions)
        return
      case "Expired":
      case "Fenced":
        this.#disturb("a lost session")
        this.#leave(member, Array.from(this.#owners.keys()))
        return
      case "Left":
        this.#leave(member, Array.from(this.#owners.keys()))
        return
    }
  }

  #leave(member: string, partitions: ReadonlyArray<PartitionName>): void {
    for (const partition of partitions) {
      const owner = this.#owners.get(partition)
      if (owner?.member !== member) continue
      this.#owners.delete(partition)
      for (const [id, letter] of this.letters) letter.isLate ||= this.byId.get(id)?.partition === partition
      for (const call of this.running.values())
        call.isLate ||= call.process === owner.process && call.records.some((each) => each.partition === partition)
    }
  }

  /** The main partitions of the binding with their keys. */
  mains(): ReadonlyArray<PartitionName> {
    const topics = mainTopics(this.plan)
    const keyless = this.keyless.map(({ partition }) => partition)
    return [...new Set([...this.keys.keys(), ...keyless])].filter((partition) => topics.includes(topicOf(partition)))
  }
}

/** The epoch that a commit names; 0 without one. */
export const epochOf = (metadata: string): number => Number(/[:;]epoch=(\d+)/.exec(metadata)?.[1] ?? 0)
