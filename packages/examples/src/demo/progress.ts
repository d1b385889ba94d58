/**
 * What the screen shows while the demo runs: kept from the connector's events. The account at the end does not use it, except for what
 * cut work off.
 */
import type { ConsumerRecord, EventBusEvent } from "@eventbus/core"

export interface PartitionProgress {
  /** The instance that owns it. */
  owner: string | undefined
  /** Orders before this offset are finished. */
  committed: number
  /** Orders in the log. */
  end: number
  inHand: InHand | undefined
}

/** The order that a handler works on now. */
export interface InHand {
  readonly offset: bigint
  readonly sinceMillis: number
  /** What the last attempt failed with, when there was one. */
  readonly trouble: string | undefined
}

export interface Announcement {
  readonly atMillis: number
  readonly text: string
}

export interface Progress {
  readonly startedMillis: number
  readonly partitions: ReadonlyArray<PartitionProgress>
  readonly announcements: ReadonlyArray<Announcement>
  /** Partition to what cut its work off; orders of that partition may be handled twice. */
  readonly interruptions: ReadonlyMap<number, string>
  readonly counts: { handled: number; retries: number; deadLettered: number }
  readonly announce: (text: string) => void
  readonly arrived: (metadata: ConsumerRecord.RecordMetadata) => void
  readonly observe: (instance: string, event: EventBusEvent.EventBusEvent) => void
}

export const make = (partitionCount: number, nowMillis: () => number): Progress => {
  const partitions = Array.from(
    { length: partitionCount },
    (): PartitionProgress => ({ owner: undefined, committed: 0, end: 0, inHand: undefined })
  )
  const announcements: Array<Announcement> = []
  const interruptions = new Map<number, string>()
  const counts = { handled: 0, retries: 0, deadLettered: 0 }
  const startedMillis = nowMillis()

  const leave = (partition: PartitionProgress | undefined, instance: string) => {
    if (partition?.owner !== instance) return
    partition.owner = undefined
    partition.inHand = undefined
  }

  const observe = (instance: string, event: EventBusEvent.EventBusEvent): void => {
    if (!("partition" in event)) return
    const partition = partitions[event.partition]
    if (partition === undefined) return
    switch (event._tag) {
      case "PartitionAssigned":
        partition.owner = instance
        return
      case "PartitionReleased":
        return leave(partition, instance)
      case "PartitionLost":
      case "DrainTimedOut":
      case "ProcessingBudgetReached":
        interruptions.set(event.partition, event._tag)
        return leave(partition, instance)
      case "Started":
        partition.inHand = { offset: event.record.offset, sinceMillis: nowMillis(), trouble: undefined }
        return
      case "AttemptFailed":
        if (event.retryInMillis === undefined) return
        counts.retries++
        partition.inHand = {
          offset: event.record.offset,
          sinceMillis: partition.inHand?.sinceMillis ?? nowMillis(),
          trouble: event.failure.className
        }
        return
      case "Settled":
        partition.inHand = undefined
        if (event.settlement === "Handled") counts.handled++
        if (event.settlement === "DeadLettered") counts.deadLettered++
        return
      case "Committed":
        partition.committed = Math.max(partition.committed, Number(event.offset))
        return
      default:
        return
    }
  }

  return {
    startedMillis,
    partitions,
    announcements,
    interruptions,
    counts,
    announce: (text) => announcements.push({ atMillis: nowMillis() - startedMillis, text }),
    arrived: ({ partition, offset }) => {
      const log = partitions[partition]
      if (log !== undefined) log.end = Math.max(log.end, Number(offset) + 1)
    },
    observe
  }
}

/** Orders that are in the log and not finished. */
export const waiting = (progress: Progress): number =>
  progress.partitions.reduce((sum, { end, committed }) => sum + end - committed, 0)
