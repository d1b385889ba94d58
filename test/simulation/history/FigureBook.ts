/**
 * The figures of each process according to a history: how often it reported each result, what its handlers did, which copies it published, and when each
 * partition was touched last.
 */
import type { EventBusEvent } from "@eventbus/core"
import { deadLetterTopics, mainTopics } from "../scenario/retries.ts"
import type { BindingPlan, Scenario } from "../scenario/Scenario.ts"
import { figureKey } from "./figures.ts"
import type { Entry } from "./History.ts"
import { LetterBook } from "./LetterBook.ts"
import { Members } from "./Members.ts"

type Event = EventBusEvent.EventBusEvent
type SettledEvent = Extract<Event, { readonly _tag: "Settled" }>

/** A record that a process has begun and not finished. */
export interface InFlight {
  readonly offset: bigint
  readonly timestamp: number
}

/** The figures of one process according to a history. */
export interface ProcessBook {
  /** The values of counters and histograms by `figureKey`. */
  readonly counts: Map<string, number>
  /** Records that handlers handled, by partition. */
  readonly handled: Map<string, number>
  /** Copies that were begun and not refused, by topic. */
  readonly sent: Map<string, number>
  /** Copies in the logs, by topic. Those of aborted transactions are none. */
  readonly stored: Map<string, number>
  readonly breakers: Map<string, string>
  readonly states: Map<string, string>
  /** Bindings that an operator has paused. */
  readonly paused: Set<string>
  /** The numbers of consumers with a session, by binding, and of those whose session is being closed. */
  readonly sessions: Map<string, Set<number>>
  readonly closing: Map<string, Set<number>>
  /** Times at which partitions were assigned to it last. */
  readonly assignedMillis: Map<string, number>
  /** Times at which somebody has read its figures. */
  readonly readMillis: Array<number>
  /** Records that have begun and are not finished, by partition. */
  readonly inFlight: Map<string, Map<bigint, InFlight>>
}

/** The longest faults of a plan that last. */
const longest: Readonly<Record<string, number>> = { BrokerDown: 15_000, CoordinatorMoved: 5_000, Isolated: 120_000 }

const add = (counts: Map<string, number>, key: string, by = 1): void => {
  counts.set(key, (counts.get(key) ?? 0) + by)
}

export class FigureBook {
  readonly scenario: Scenario
  private readonly processes = new Map<string, ProcessBook>()
  private readonly calls = new Map<number, { readonly binding: string; partition: string; readonly atMillis: number }>()
  private readonly sends = new Map<string, string>()
  private readonly touched = new Map<string, number>()
  /** The members of groups that own partitions, with the generation of their assignment, by group and partition. */
  private readonly owners = new Map<string, { readonly memberId: string; readonly generation: number }>()
  private readonly members = new Members()
  /** The client of the newest append. */
  private appendedBy = ""
  readonly letters: LetterBook
  /** Time at which the last fault of the cluster is over at the latest. */
  troubledUntilMillis = Number.NEGATIVE_INFINITY

  constructor(scenario: Scenario) {
    this.scenario = scenario
    this.letters = new LetterBook(scenario)
  }

  readonly of = (process: string): ProcessBook => {
    const known = this.processes.get(process)
    if (known !== undefined) return known
    const fresh: ProcessBook = {
      ...{ counts: new Map(), handled: new Map(), sent: new Map(), stored: new Map() },
      ...{
        breakers: new Map(),
        states: new Map(),
        paused: new Set(),
        sessions: new Map(),
        closing: new Map(),
        inFlight: new Map()
      },
      assignedMillis: new Map(),
      readMillis: []
    }
    this.processes.set(process, fresh)
    return fresh
  }

  /** Time at which something happened to a partition last. */
  touchedMillis(partition: string): number {
    return this.touched.get(partition) ?? Number.NEGATIVE_INFINITY
  }

  /** The process that owns a partition, as the broker sees it, and the generation of its assignment. */
  ownerOf(
    groupId: string,
    partition: string
  ): { readonly process: string | undefined; readonly generation: number } | undefined {
    const owner = this.owners.get(`${groupId} ${partition}`)
    return owner && { process: this.members.processOf(owner.memberId), generation: owner.generation }
  }

  apply(entry: Entry): void {
    this.letters.apply(entry)
    switch (entry._tag) {
      case "Read":
        this.of(entry.process).readMillis.push(entry.atMillis)
        return
      case "ProcessStarted":
        this.members.started(entry.process)
        return
      case "LogEnd":
      case "Compacted":
      case "Truncated":
      case "Published":
        this.touched.set(entry.partition, entry.atMillis)
        return
      case "Paused":
        this.of(entry.process).paused.add(entry.binding)
        return
      case "Resumed":
        this.of(entry.process).paused.delete(entry.binding)
        return
      case "Called":
        this.calls.set(entry.call, entry)
        return
      case "Returned":
        this.returned(entry)
        return
      case "Sent":
        this.sends.set(`${entry.process} ${entry.number}`, entry.copy.topic)
        add(this.of(entry.process).sent, entry.copy.topic)
        return
      case "SendFailed": {
        const topic = this.sends.get(`${entry.process} ${entry.number}`)
        if (topic !== undefined) add(this.of(entry.process).sent, topic, -1)
        return
      }
      case "Stored": {
        const readable = entry.copies.filter(({ isReadable, isReplay }) => isReadable && !isReplay)
        if (readable.length > 0) add(this.of(this.appendedBy).stored, readable[0]!.copy.topic, readable.length)
        return
      }
      case "Broker":
        this.broker(entry)
        return
      case "Connector":
        this.connector(entry.process, entry.event, entry.atMillis)
    }
  }

  private returned({ call, process, done, outcome, atMillis }: Extract<Entry, { readonly _tag: "Returned" }>): void {
    const begun = this.calls.get(call)
    if (begun === undefined) return
    this.calls.delete(call)
    const { counts, handled } = this.of(process)
    add(handled, begun.partition, done.length)
    const kind = outcome === "interrupted" ? "cut" : "whole"
    add(counts, figureKey(`${kind} calls`, begun.binding))
    add(counts, figureKey(`${kind} millis`, begun.binding), atMillis - begun.atMillis)
  }

  private broker({ entry, atMillis }: Extract<Entry, { readonly _tag: "Broker" }>): void {
    if (entry._tag === "FaultInjected")
      this.troubledUntilMillis = Math.max(this.troubledUntilMillis, atMillis + (longest[entry.effect] ?? 0))
    if (entry._tag === "Appended") {
      this.appendedBy = entry.clientId
      this.touched.set(`${entry.topic}/${entry.partition}`, atMillis)
    }
    if (entry._tag === "Committed")
      for (const { topic, partition } of entry.offsets) this.touched.set(`${topic}/${partition}`, atMillis)
    if ("memberId" in entry && entry._tag !== "Committed") this.memberChanged(entry, atMillis)
  }

  private memberChanged(
    entry: Exclude<Extract<Extract<Entry, { _tag: "Broker" }>["entry"], { memberId: string }>, { _tag: "Committed" }>,
    atMillis: number
  ): void {
    const { groupId, memberId } = entry
    if (entry._tag === "Left" || entry._tag === "Expired" || entry._tag === "Fenced") {
      for (const [key, owner] of this.owners)
        if (owner.memberId === memberId && key.startsWith(`${groupId} `)) this.owners.delete(key)
    }
    if (!("partitions" in entry)) return
    for (const partition of entry.partitions) {
      this.touched.set(partition, atMillis)
      if (entry._tag === "Assigned")
        this.owners.set(`${groupId} ${partition}`, { memberId, generation: entry.generation })
      else if (entry._tag !== "Revoked") this.owners.delete(`${groupId} ${partition}`)
    }
  }

  private connector(process: string, event: Event, atMillis: number): void {
    const book = this.of(process)
    const { counts } = book
    const { binding } = event
    switch (event._tag) {
      case "Settled":
        this.settled(book, event, atMillis)
        return
      case "Started": {
        const partition = `${event.topic}/${event.partition}`
        const open = book.inFlight.get(partition) ?? new Map<bigint, InFlight>()
        const { offset, timestamp } = event.record
        book.inFlight.set(partition, open.set(offset, { offset, timestamp }))
        return
      }
      case "PartitionAssigned":
        book.assignedMillis.set(`${event.topic}/${event.partition}`, atMillis)
        book.inFlight.delete(`${event.topic}/${event.partition}`)
        return
      case "PublishFailed":
        add(counts, figureKey("eventbus.publish.failed", binding, event.topic))
        return
      case "ProcessingBudgetReached":
        add(counts, figureKey("eventbus.poll.interval.safety.triggered", binding))
        return
      case "RecordsGone":
        add(
          counts,
          figureKey("eventbus.records.gone", binding, event.topic, event.partition),
          Number(event.gone ?? event.keys ?? 0)
        )
        return
      case "BreakerChanged":
        book.breakers.set(binding, event.to)
        add(counts, figureKey("eventbus.circuit.transitions", binding, event.to))
        return
      case "StateChanged":
        book.states.set(binding, event.to)
        return
      case "SessionStarted":
      case "SessionCrashed":
      case "ConsumerFenced":
      case "SessionClosed": {
        const sessions = book.sessions.get(binding) ?? new Set<number>()
        const closing = book.closing.get(binding) ?? new Set<number>()
        book.sessions.set(binding, sessions)
        book.closing.set(binding, closing)
        if (event._tag === "SessionStarted") sessions.add(event.consumer)
        else sessions.delete(event.consumer)
        if (event._tag === "SessionClosed") closing.add(event.consumer)
        else closing.delete(event.consumer)
      }
    }
  }

  private settled(book: ProcessBook, event: SettledEvent, atMillis: number): void {
    const { binding, topic, partition, settlement, target, failure, attempts, record } = event
    const at = `${topic}/${partition}`
    const { counts } = book
    this.touched.set(at, atMillis)
    if (settlement !== "Halted" && settlement !== "HeldByBreaker") book.inFlight.get(at)?.delete(record.offset)
    if (settlement === "HeldByBreaker" || settlement === "Abandoned") return
    if (settlement !== "Handled" && failure !== undefined)
      add(counts, figureKey("eventbus.records.failed", binding, topic, failure.className))
    if (settlement === "Halted") return
    const plan = this.scenario.bindings.find(({ name }) => name === binding)!
    const tier = tierLabel(plan, topic)
    add(counts, figureKey("eventbus.retry.count.count", binding, tier))
    add(counts, figureKey("eventbus.retry.count.sum", binding, tier), Math.max(0, attempts - 1))
    add(counts, figureKey("kafka.consumer.records.consumed", plan.groupId, binding))
    add(counts, figureKey("messaging.client.consumed.messages", binding, topic, partition))
    if (settlement === "Handled") add(counts, figureKey("eventbus.records.processed", binding, topic, partition))
    if (settlement === "Skipped") add(counts, figureKey("eventbus.records.skipped", binding, topic))
    if (target === undefined) return
    add(counts, figureKey("messaging.client.sent.messages", binding, target.topic))
    if (settlement === "Routed") add(counts, figureKey("eventbus.records.routed", binding, topic, target.tier!))
    else add(counts, figureKey("eventbus.records.dlq", binding, topic, target.reason ?? "none"))
  }
}

/** `0` for the main topic, `2` for the topic of tier 2, `2-4` for a topic that tiers share. */
const tierLabel = (plan: BindingPlan, topic: string): string => {
  if (mainTopics(plan).includes(topic) || deadLetterTopics(plan).includes(topic)) return "0"
  const first = Number(topic.slice(topic.lastIndexOf("-") + 1))
  const { delayMillis } = plan.tiers[first - 1]!
  let last = first
  while (plan.tiers[last]?.delayMillis === delayMillis) last++
  return first === last ? String(first) : `${first}-${last}`
}
