/**
 * The figures on the screen during the demo, counted from the connector's events. The account at the end does not use them, except for the partitions
 * whose work was cut off.
 */
import type { CircuitBreaker, ConsumerRecord, EventBusEvent } from "@eventbus/core"
import { retryDelaysMillis } from "./shop.ts"

type Event = EventBusEvent.EventBusEvent

export interface PartitionProgress {
  /** The instance that owns it. */
  owner: string | undefined
  /** Orders before this offset are finished. */
  committed: number
  /** Number of orders in the log. */
  end: number
  inHand: InHand | undefined
  /** The cause that cut work off before its commit, if any: at-least-once delivery repeats that work. */
  cutOffBy: Event["_tag"] | undefined
}

/** The order that a handler processes now. */
export interface InHand {
  readonly offset: bigint
  readonly sinceMillis: number
  /** The failure of its last attempt, and what comes next. */
  readonly failure: { readonly exception: string; readonly next: "retry" | "elsewhere" } | undefined
}

/** One retry topic. */
export interface TierProgress {
  readonly delayMillis: number
  /** Due times of the waiting orders, the earliest first. */
  readonly dueMillis: Array<number>
}

/** The circuit breaker of an instance. */
export interface BreakerProgress {
  readonly state: CircuitBreaker.State
  /** Time of the next trial, while it is open. */
  readonly looksAtMillis: number | undefined
}

export interface Announcement {
  readonly atMillis: number
  readonly text: string
}

export interface Progress {
  readonly partitions: ReadonlyArray<PartitionProgress>
  readonly tiers: ReadonlyArray<TierProgress>
  /** By instance; only breakers that have ever opened. */
  readonly breakers: ReadonlyMap<string, BreakerProgress>
  readonly announcements: ReadonlyArray<Announcement>
  readonly counts: Counts
  readonly announce: (text: string) => void
  /** Position of each order in its topic. */
  readonly positions: ReadonlyMap<string, ConsumerRecord.RecordMetadata>
  readonly published: (id: string, metadata: ConsumerRecord.RecordMetadata) => void
  readonly observe: (instance: string, event: Event) => void
}

interface Counts {
  placed: number
  rolledBack: number
  handled: number
  retries: number
  routed: number
  deadLettered: number
}

export const make = (partitionCount: number, nowMillis: () => number): Progress => {
  const partitions = Array.from({ length: partitionCount }, empty)
  const tiers = retryDelaysMillis.map((delayMillis): TierProgress => ({ delayMillis, dueMillis: [] }))
  const breakers = new Map<string, BreakerProgress>()
  const announcements: Array<Announcement> = []
  const counts: Counts = { placed: 0, rolledBack: 0, handled: 0, retries: 0, routed: 0, deadLettered: 0 }
  const positions = new Map<string, ConsumerRecord.RecordMetadata>()
  const startedMillis = nowMillis()
  return {
    partitions,
    tiers,
    breakers,
    announcements,
    counts,
    announce: (text) => announcements.push({ atMillis: nowMillis() - startedMillis, text }),
    positions,
    published: (id, metadata) => {
      positions.set(id, metadata)
      const log = partitions[metadata.partition]
      if (log !== undefined) log.end = Math.max(log.end, Number(metadata.offset) + 1)
    },
    observe: (instance, event) => {
      count(counts, event)
      if (event._tag === "Settled") followTiers(tiers, event, nowMillis())
      if (event._tag === "BreakerChanged") {
        breakers.set(instance, { state: event.to, looksAtMillis: event.snapshot.nextProbeAtMillis })
      }
      if (event._tag === "SessionClosed") breakers.delete(instance)
      const isRetry = "topic" in event && tierOf(event.topic) > 0
      for (const [index, partition] of partitions.entries()) {
        if ("partition" in event && event.partition === index) {
          if (!isRetry) follow(partition, instance, event, nowMillis())
          // Retry topics have the partitions of their source, so the partition identifies the orders.
          else if (cutsOff(event)) partition.cutOffBy = event._tag
        }
        if (event._tag === "SessionCrashed" && partition.owner === instance) cutOff(partition, event)
      }
    }
  }
}

/** Orders that are committed in the database and not yet in the log. */
export const inOutbox = ({ counts, partitions }: Progress): number =>
  Math.max(0, counts.placed - partitions.reduce((sum, { end }) => sum + end, 0))

/** Orders in the log that the group has not committed, or that wait in a retry topic. An order that moves between the two counts twice. */
export const waiting = ({ partitions, tiers }: Progress): number =>
  partitions.reduce((sum, { end, committed }) => sum + end - committed, 0) +
  tiers.reduce((sum, { dueMillis }) => sum + dueMillis.length, 0)

/** Orders that are committed in the database and neither handled nor dead-lettered. */
export const onTheirWay = ({ counts }: Progress): number =>
  Math.max(0, counts.placed - counts.handled - counts.deadLettered)

/** The number in a retry topic's name; 0 for any other topic. */
const tierOf = (topic: string): number => Number(/\.retry-(\d+)$/.exec(topic)?.[1] ?? 0)

/** Moves an order out of the tier in which it was finished and into another one. */
const followTiers = (
  tiers: ReadonlyArray<TierProgress>,
  event: Extract<Event, { readonly _tag: "Settled" }>,
  nowMillis: number
): void => {
  const kept = event.settlement === "Abandoned" || event.settlement === "HeldByBreaker" || event.settlement === "Halted"
  if (!kept) tiers[tierOf(event.topic) - 1]?.dueMillis.shift()
  const next = tiers[(event.target?.tier ?? 0) - 1]
  if (event.settlement === "Routed") next?.dueMillis.push(nowMillis + next.delayMillis)
}

const empty = (): PartitionProgress => ({
  owner: undefined,
  committed: 0,
  end: 0,
  inHand: undefined,
  cutOffBy: undefined
})

const count = (counts: Counts, event: Event): void => {
  if (event._tag === "AttemptFailed" && event.retryInMillis !== undefined) counts.retries++
  if (event._tag !== "Settled") return
  if (event.settlement === "Handled") counts.handled++
  if (event.settlement === "DeadLettered") counts.deadLettered++
  if (event.settlement === "Routed") counts.routed++
}

const follow = (partition: PartitionProgress, instance: string, event: Event, nowMillis: number): void => {
  switch (event._tag) {
    case "PartitionAssigned":
      partition.owner = instance
      break
    case "PartitionReleased":
      leave(partition)
      break
    case "PartitionLost":
    case "DrainTimedOut":
    case "ProcessingBudgetReached":
      cutOff(partition, event)
      break
    case "Started":
      partition.inHand = { offset: event.record.offset, sinceMillis: nowMillis, failure: undefined }
      break
    case "AttemptFailed": {
      const sinceMillis = partition.inHand?.sinceMillis ?? nowMillis
      const next = event.retryInMillis === undefined ? "elsewhere" : "retry"
      const failure = { exception: event.failure.className, next } as const
      partition.inHand = { offset: event.record.offset, sinceMillis, failure }
      break
    }
    case "Settled":
      partition.inHand = undefined
      break
    case "Committed":
      partition.committed = Math.max(partition.committed, Number(event.offset))
      break
  }
}

const cutsOff = ({ _tag }: Event): boolean =>
  _tag === "PartitionLost" || _tag === "DrainTimedOut" || _tag === "ProcessingBudgetReached"

const leave = (partition: PartitionProgress): void => {
  partition.owner = undefined
  partition.inHand = undefined
}

const cutOff = (partition: PartitionProgress, event: Event): void => {
  partition.cutOffBy = event._tag
  leave(partition)
}
