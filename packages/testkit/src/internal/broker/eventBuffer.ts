/**
 * Where a session's events go: a bounded queue, and in front of it what found the queue full. Owns the order of events.
 */
import type { Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import { Effect, Queue } from "effect"

type Event = Broker.ConsumerEvent
type EventQueue = Queue.Queue<Event, BrokerError.BrokerError>

/** Events that may wait to be taken; fetching waits when there are so many, as a client's buffer would make it. */
const capacity = 16

export const makeQueue: Effect.Effect<EventQueue> = Queue.bounded(capacity)

export class EventBuffer {
  readonly queue: EventQueue
  /** At most a few per rebalance, and one fetch: the next is sent when nothing waits here. */
  private readonly waiting: Array<Event> = []
  private failure: BrokerError.BrokerError | undefined

  constructor(queue: EventQueue) {
    this.queue = queue
  }

  /** Hands over an event at once, or keeps it until `flush` when the queue is full. */
  emit(event: Event): void {
    if (this.waiting.length > 0 || !Queue.offerUnsafe(this.queue, event)) this.waiting.push(event)
  }

  /** The events end with this failure, behind what waits already. */
  failWith(error: BrokerError.BrokerError): void {
    this.failure = error
  }

  /** Waits until everything that was emitted is in the queue. */
  readonly flush: Effect.Effect<void> = Effect.suspend(() => {
    const event = this.waiting.shift()
    if (event) return Effect.andThen(Queue.offer(this.queue, event), this.flush)
    return this.failure ? Effect.asVoid(Queue.fail(this.queue, this.failure)) : Effect.void
  })

  /** Takes back what was fetched from a partition, also what waits for room in the queue. */
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

/** What a fetch from a position led to: a chunk, or the news that the position does not exist. */
const isFetchOf = (event: Event, at: ConsumerRecord.TopicPartition): boolean => {
  const fetched = event._tag === "Fetched" ? event.chunk : event._tag === "OutOfRange" ? event : undefined
  return fetched?.topic === at.topic && fetched.partition === at.partition
}
