/**
 * The events of all connectors of one `TestBus`, each with its time. Trails, waits and assertions read them.
 */
import { type ConsumerRecord, DeadLetterRecord, type EventBusEvent } from "@eventbus/core"

type Event = EventBusEvent.EventBusEvent
type Tag = Event["_tag"]

/** One event with its time in milliseconds since the bus started. */
export interface RecordedEvent<E extends Event = Event> {
  /** Milliseconds since the bus started. */
  readonly atMillis: number
  /** The event as the connector reported it. */
  readonly event: E
}

type RecordedEventOf<T extends Tag> = RecordedEvent<Extract<Event, { readonly _tag: T }>>

/** Topic, partition and offset of a record. */
export interface Position extends ConsumerRecord.TopicPartition {
  readonly offset: bigint
}

/** An event about one record. */
export type RecordEvent = Extract<Event, { readonly record: ConsumerRecord.ConsumerRecord }>

/** An event about one partition. */
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

  /** The events of a partition in every consumer of the binding. */
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

  /** The last event about the ownership of a partition. */
  owner(binding: string, at: ConsumerRecord.TopicPartition): PartitionEvent | undefined {
    return this.ofPartition(binding, at).findLast(({ event }) => ownershipTags.has(event._tag))?.event
  }

  /** The events of the record at this position. */
  ofRecord(binding: string, at: Position): ReadonlyArray<RecordedEvent<RecordEvent>> {
    return this.records(binding).filter(({ event: { record } }) => isAt(record, at))
  }

  /** The events of a record of the main topic and of all its copies. */
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

const isAt = (record: Position, at: Position): boolean =>
  record.topic === at.topic && record.partition === at.partition && record.offset === at.offset

/** Whether a record of a retry or dead letter topic names this position as its origin. */
export const isCopyOf = (record: ConsumerRecord.ConsumerRecord, origin: Position): boolean => {
  if (record.topic === origin.topic) return false
  const { originFrom, originalTopic, originalPartition, originalOffset } = DeadLetterRecord.read(record)
  return (
    originFrom !== "none" &&
    isAt({ topic: originalTopic, partition: originalPartition, offset: originalOffset }, origin)
  )
}
