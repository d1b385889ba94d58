/**
 * The state of a history as order per key sees it: what is done of each key and in which order, the locks in the retry topics, and what the group has committed.
 */
import type { EventBusEvent } from "@eventbus/core"
import { isCalm } from "../scenario/order.ts"
import { deadLetterTopics, mainTopics, retryTopics, topicOf } from "../scenario/retries.ts"
import type { BindingPlan, RecordPlan, Scenario } from "../scenario/Scenario.ts"
import type { Copy } from "./copies.ts"
import { Deletions } from "./Deletions.ts"
import { Disturbances } from "./Disturbances.ts"
import type { Entry, PartitionName, StoredLock } from "./History.ts"
import { Members } from "./Members.ts"
import { lateCall, type OrderKey, type OrderRecord, type Running } from "./orderRecords.ts"

interface Commit {
  readonly offset: bigint
  readonly epoch: number
}

export class OrderBook {
  readonly scenario: Scenario
  readonly plan: BindingPlan
  readonly isCalm: boolean
  readonly byId = new Map<string, OrderRecord>()
  /** By main partition, then by key. */
  readonly keys = new Map<PartitionName, Map<string, OrderKey>>()
  /** Records without a key, and those that are retried without order for another reason. */
  readonly withoutOrder = new Set<OrderRecord>()
  readonly locks = new Map<PartitionName, Array<StoredLock>>()
  /** By record: where its copies are. */
  readonly copies = new Map<string, Array<{ readonly partition: PartitionName; readonly offset: bigint }>>()
  readonly committed = new Map<PartitionName, Commit>()
  readonly running = new Map<number, Running>()
  /** By record: its dead letter that was sent last. */
  readonly letters = new Map<string, { isLate: boolean }>()
  readonly disturbances: Disturbances
  readonly deletions = new Deletions()
  /** The process that appended last. */
  appender = ""
  readonly #members = new Members()
  /** By partition: the process that the broker takes for its owner. */
  readonly #owners = new Map<PartitionName, { readonly member: string; readonly process: string }>()
  /** Processes that do not keep the order of each key through retry topics. */
  readonly #relaxed = new Set<string>()
  readonly #letters: ReadonlySet<string>
  readonly #tiers: ReadonlySet<string>

  constructor(scenario: Scenario, plan: BindingPlan) {
    this.scenario = scenario
    this.plan = plan
    this.isCalm = isCalm(scenario)
    this.#letters = new Set(deadLetterTopics(this.plan))
    this.#tiers = new Set(retryTopics(this.plan))
    this.disturbances = new Disturbances(scenario, (topic) => this.#tiers.has(topic))
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

  /** Whether a process does not keep the order of each key through retry topics. */
  isRelaxed(process: string): boolean {
    return this.#relaxed.has(process)
  }

  /** The retry partitions of a main partition. */
  tiersOf(partition: PartitionName): ReadonlyArray<PartitionName> {
    const main = topicOf(partition)
    const topics = retryTopics({ ...this.plan, topic: main, otherTopics: [] })
    return topics.map((topic) => `${topic}${partition.slice(main.length)}`)
  }

  /** Nothing waits for the record, and it waits for nothing: it is retried without order, or it may be gone. */
  isLoose({ isRelaxed, isPassedOver, partition, offset }: OrderRecord): boolean {
    return isRelaxed || isPassedOver || this.deletions.isGone(partition, offset)
  }

  /** Whether it is gone, or what is left of it, and somebody has said so where that can be known. */
  isSaidGone(record: OrderRecord): boolean {
    const { plan, partition, offset, isPassedOver } = record
    const { deletions } = this
    if (isPassedOver || deletions.isCompacted(partition, offset)) return true
    if (deletions.isGone(partition, offset) && deletions.isReported(partition, offset)) return true
    if (!this.withoutOrder.has(record)) return false
    const copies = this.copies.get(plan.id) ?? []
    return copies.some(
      (at) => deletions.isGone(at.partition, at.offset) && deletions.isReported(at.partition, at.offset)
    )
  }

  apply(entry: Entry): void {
    this.disturbances.apply(entry)
    this.deletions.apply(entry, (partition) => this.committed.has(partition))
    switch (entry._tag) {
      case "Published":
        for (const [index, plan] of entry.records.entries()) this.#add(entry, plan, index)
        return
      case "Called": {
        const records = entry.ids.flatMap((id) => this.byId.get(id) ?? [])
        this.running.set(entry.call, {
          ...{ process: entry.process, records, partition: entry.partition },
          isLate: records.some((record) => this.isZombie(entry.process, record))
        })
        return
      }
      case "Returned": {
        const { records, isLate, partition } = this.running.get(entry.call) ?? lateCall
        this.running.delete(entry.call)
        if (entry.outcome === "done")
          for (const record of records) this.#finish(record, isLate || this.isZombie(entry.process, record))
        else {
          this.disturbances.failed(entry.process, partition)
          for (const record of records) this.#relax(entry.process, record)
        }
        return
      }
      case "Sent": {
        const record = this.byId.get(entry.copy.id)
        if (record === undefined) return
        const isRelaxed = this.#relax(entry.process, record)
        if (isRelaxed && this.#tiers.has(entry.copy.topic) && !isLock(entry.copy)) this.withoutOrder.add(record)
        if (this.#letters.has(entry.copy.topic))
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

  #add({ partition, firstOffset, atMillis }: Extract<Entry, { _tag: "Published" }>, plan: RecordPlan, place: number) {
    const offset = firstOffset + BigInt(place)
    const of = plan.key === null ? undefined : this.#key(partition, plan.key)
    const at = { plan, partition, offset, of, publishedMillis: atMillis }
    const index = of?.records.length ?? 0
    const record: OrderRecord = { ...at, index, isDone: false, isRelaxed: false, isPassedOver: false }
    this.byId.set(plan.id, record)
    if (of === undefined) this.withoutOrder.add(record)
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
    if (key === undefined || record.isRelaxed) return
    if (isLate) key.zombie = Math.max(key.zombie, index)
    else {
      key.last = index
      if (index > key.zombie) key.zombie = -1
    }
  }

  #event(entry: Extract<Entry, { _tag: "Connector" }>): void {
    const { event, process } = entry
    if (event._tag === "LocksGone") this.#passOver(event)
    if (event._tag !== "Settled" && event._tag !== "Started") return
    const value = new TextDecoder().decode(event.record.value ?? undefined)
    const record = this.byId.get(value.replace(/^!/, ""))
    if (record === undefined) return
    // A copy of another group is skipped without a call.
    if (event._tag === "Settled" && event.settlement === "Skipped" && event.attempts > 0)
      this.#finish(record, this.isZombie(process, record))
    // A value that cannot be read fails without a call.
    if (event._tag === "Started" && value.startsWith("!")) this.#relax(process, record)
  }

  /** The record fails. Where nobody keeps the order of its key, the next one begins before its copy is on its way. */
  #relax(process: string, record: OrderRecord): boolean {
    record.isRelaxed ||= this.#relaxed.has(process)
    return this.#relaxed.has(process)
  }

  /** The locks of keys are gone, with what waited behind them. */
  #passOver({ topic, partition, from, to }: Extract<EventBusEvent.EventBusEvent, { _tag: "LocksGone" }>): void {
    const main = `${topic}/${partition}`
    const keys = this.tiersOf(main).flatMap((tier) =>
      (this.locks.get(tier) ?? []).flatMap(({ at, key }) => (this.deletions.isGone(tier, at) ? (key ?? []) : []))
    )
    for (const key of keys) {
      for (const record of this.keys.get(main)?.get(key)?.records ?? [])
        if (record.offset >= from && record.offset < to) record.isPassedOver = true
    }
  }

  #operation(entry: Entry): void {
    switch (entry._tag) {
      case "ProcessStarted":
        this.#members.started(entry.process)
        if (entry.orderingMode === "RELAXED_IN_RETRY") this.#relaxed.add(entry.process)
        return
      case "ProcessKilled":
        for (const [call, { process }] of this.running) if (process === entry.process) this.running.delete(call)
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
      case "Released":
        this.#leave(member, entry.partitions)
        return
      case "Expired":
      case "Fenced":
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
      // A unit ends with each of its parts.
      const isOf = (record: OrderRecord | undefined): boolean =>
        record !== undefined && (record.partition === partition || this.tiersOf(record.partition).includes(partition))
      for (const [id, letter] of this.letters) letter.isLate ||= isOf(this.byId.get(id))
      for (const call of this.running.values())
        call.isLate ||= call.process === owner.process && call.records.some(isOf)
    }
  }

  /** The main partitions of the binding with their keys. */
  mains(): ReadonlyArray<PartitionName> {
    const topics = mainTopics(this.plan)
    const keyless = Array.from(this.withoutOrder).map(({ partition }) => partition)
    return [...new Set([...this.keys.keys(), ...keyless])].filter((partition) => topics.includes(topicOf(partition)))
  }
}

const isLock = ({ headers }: Copy): boolean => headers.has("order-bond")

/** The epoch that a commit names; 0 without one. */
export const epochOf = (metadata: string): number => Number(/[:;]epoch=(\d+)/.exec(metadata)?.[1] ?? 0)
