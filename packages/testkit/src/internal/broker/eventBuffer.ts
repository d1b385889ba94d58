/**
 * The events of a session: a bounded queue, and the events that wait until the queue has room. It keeps the order of events.
 */
import type { Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"

type Event = Broker.ConsumerEvent
type EventQueue = Queue.Queue<Event, BrokerError.BrokerError>

/** Capacity of the queue. Fetching waits while it is full, as a client with a full buffer does. */
const capacity = 16

export const makeQueue: Effect.Effect<EventQueue> = Queue.bounded(capacity)

export class EventBuffer {
  readonly queue: EventQueue
  /** At most a few events of a rebalance and one fetch: the session fetches again only when this is empty. */
  private readonly waiting: Array<Event> = []
  private failure: BrokerError.BrokerError | undefined

  constructor(queue: EventQueue) {
    this.queue = queue
  }

  /** Puts an event into the queue, or keeps it until `flush` when the queue is full. */
  emit(event: Event): void {
    if (this.waiting.length > 0 || !Queue.offerUnsafe(this.queue, event)) this.waiting.push(event)
  }

  /** Ends the events with this failure, after those that wait already. */
  failWith(error: BrokerError.BrokerError): void {
    this.failure = error
  }

  /** Waits until every emitted event is in the queue. */
  readonly flush: Effect.Effect<void> = Effect.suspend(() => {
    const event = this.waiting.shift()
    if (event) return Effect.andThen(Queue.offer(this.queue, event), this.flush)
    return this.failure ? Effect.asVoid(Queue.fail(this.queue, this.failure)) : Effect.void
  })

  /** Removes the fetched chunks of a partition, also those that wait for room in the queue. */
  forgetFetches(at: ConsumerRecord.TopicPartition): void {
    const events: Array<Event> = []
    while (Queue.sizeUnsafe(this.queue) > 0) {
      const exit = Queue.takeUnsafe(this.queue)
      if (exit?._tag === "Success") events.push(exit.value)
    }
    events.push(...this.waiting.splice(0))
    for (const event of events) if (!isFetchOf(event, at)) this.emit(event)
  }
}

/** The result of a fetch from this partition: a chunk, or the report that the position does not exist or cannot be read. */
const isFetchOf = (event: Event, at: ConsumerRecord.TopicPartition): boolean => {
  const isRefused = event._tag === "OutOfRange" || event._tag === "Unreadable"
  const fetched = event._tag === "Fetched" ? event.chunk : isRefused ? event : undefined
  return fetched?.topic === at.topic && fetched.partition === at.partition
}
