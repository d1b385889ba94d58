/**
 * Everything that the connectors of one `TestBus` reported, with the time of each: what trails, waits and assertions are read from. Owns that list.
 */
import { type ConsumerRecord, DeadLetterRecord, type EventBusEvent } from "@eventbus/core"

type Event = EventBusEvent.EventBusEvent
type Tag = Event["_tag"]

/** One event, and when it happened: milliseconds since the bus began. */
export interface RecordedEvent<E extends Event = Event> {
  readonly atMillis: number
  readonly event: E
}

export type RecordedEventOf<T extends Tag> = RecordedEvent<Extract<Event, { readonly _tag: T }>>

/** A record by its coordinates. */
export interface Position extends ConsumerRecord.TopicPartition {
  readonly offset: bigint
}

/** What concerns one record. */
export type RecordEvent = Extract<Event, { readonly record: ConsumerRecord.ConsumerRecord }>

/** Which partition, by whichever binding and consumer. */
type PartitionEvent = Exclude<Extract<Event, { readonly generation: number }>, RecordEvent>

export class EventRecorder {
  readonly events: Array<RecordedEvent> = []
  private readonly nowMillis: () => number

  constructor(nowMillis: () => number) {
    this.nowMillis = nowMillis
  }

  readonly record = (event: Event): void => {
    this.events.push({ atMillis: this.nowMillis(), event })
  }

  of<T extends Tag>(tag: T): ReadonlyArray<RecordedEventOf<T>> {
    return this.events.filter((entry): entry is RecordedEventOf<T> => entry.event._tag === tag)
  }

  /** What happened to a partition, in whichever consumer of the binding. */
  ofPartition(binding: string, at: ConsumerRecord.TopicPartition): ReadonlyArray<RecordedEvent<PartitionEvent>> {
    return this.events.filter(
      (entry): entry is RecordedEvent<PartitionEvent> =>
        "generation" in entry.event &&
        !("record" in entry.event) &&
        entry.event.binding === binding &&
        entry.event.topic === at.topic &&
        entry.event.partition === at.partition
    )
  }

  /** What was said last about who has a partition. */
  owner(binding: string, at: ConsumerRecord.TopicPartition): PartitionEvent | undefined {
    return this.ofPartition(binding, at).findLast(({ event }) => ownershipTags.has(event._tag))?.event
  }

  /** What happened to one record, as it lies in its topic. */
  ofRecord(binding: string, at: Position): ReadonlyArray<RecordedEvent<RecordEvent>> {
    return this.records(binding).filter(({ event: { record } }) => isAt(record, at))
  }

  /** What happened to a record of the binding's main topic and to all copies of it. */
  ofOrigin(binding: string, origin: Position): ReadonlyArray<RecordedEvent<RecordEvent>> {
    return this.records(binding).filter(({ event: { record } }) => isAt(record, origin) || isCopyOf(record, origin))
  }

  private records(binding: string): ReadonlyArray<RecordedEvent<RecordEvent>> {
    return this.events.filter(
      (entry): entry is RecordedEvent<RecordEvent> => "record" in entry.event && entry.event.binding === binding
    )
  }
}

const ownershipTags: ReadonlySet<Tag> = new Set<Tag>([
  "PartitionAssigned",
  "PartitionRevoked",
  "PartitionReleased",
  "PartitionLost"
])

export const isAt = (record: Position, at: Position): boolean =>
  record.topic === at.topic && record.partition === at.partition && record.offset === at.offset

/** Whether a record of a retry or dead letter topic says that it was first there. */
export const isCopyOf = (record: ConsumerRecord.ConsumerRecord, origin: Position): boolean => {
  if (record.topic === origin.topic) return false
  const { originFrom, originalTopic, originalPartition, originalOffset } = DeadLetterRecord.read(record)
  return (
    originFrom !== "none" &&
    isAt({ topic: originalTopic, partition: originalPartition, offset: originalOffset }, origin)
  )
}
