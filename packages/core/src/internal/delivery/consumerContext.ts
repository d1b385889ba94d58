/**
 * What all partitions of one consumer share while they handle records, and how they report what happens.
 */
import type { Clock, Effect } from "effect"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, TopicPartition } from "../../ConsumerRecord.ts"
import type { EventBusEvent } from "../../EventBusEvent.ts"
import type { Interceptor } from "../../Interceptor.ts"
import type { Failure } from "../failure/failure.ts"
import type { BindingMetrics } from "../observe/bindingMetrics.ts"
import type { EventHub } from "../observe/eventHub.ts"
import type { BindingTracing } from "../observe/tracing.ts"
import type { Committer } from "../partition/committer.ts"
import type { Partition } from "../partition/partition.ts"
import type { Parking } from "../publish/copyPublisher.ts"
import type { Receiver } from "../record/decoding.ts"
import type { Settled } from "../record/deliveryResult.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import type { BreakerGate } from "../slots/breakerGate.ts"
import type { Places, Timer } from "../slots/concurrencySlots.ts"

export interface Handling<R> {
  readonly definition: BindingDefinition<R>
  readonly receiver: Receiver
  /** Index of the consumer in its binding. */
  readonly consumer: number
  readonly hub: EventHub
  readonly metrics: BindingMetrics
  /** Undefined when the program has no tracer. */
  readonly tracing: BindingTracing | undefined
  /** Around each call of the handler, the outermost first. */
  readonly interceptors: ReadonlyArray<Interceptor>
  readonly clock: Clock.Clock
  /** How far the wall clock was set back while this consumer ran, in milliseconds. */
  readonly setBackMillis: () => number
  readonly committer: Committer
  readonly parking: Parking
  /** Told of each dead letter that is stored; undefined when nobody wants to know. */
  readonly onDeadLetter: ((stored: ConsumerRecord) => void) | undefined
  readonly breaker: BreakerGate | undefined
  /** The group that the session is in. */
  readonly groupId: string
  /** A record halted its partition: the binding shows it, and knows it when the partition comes back. */
  readonly onHalted: (partition: Partition) => Effect.Effect<void>
  /** Adds reason `operator` to the whole binding. */
  readonly pauseBinding: Effect.Effect<void>
  /** The binding's `maxInFlight`, and a tier's `concurrency`. */
  readonly places: Places
}

/** Stands first in the events: engines copy an object by far the fastest into an empty one. */
const ofPartition = (handling: Handling<unknown>, partition: TopicPartition & { readonly generation: number }) => ({
  cluster: handling.definition.cluster,
  binding: handling.definition.name,
  consumer: handling.consumer,
  topic: partition.topic,
  partition: partition.partition,
  generation: partition.generation
})

export const started = (handling: Handling<unknown>, partition: Partition, record: ConsumerRecord): void => {
  if (handling.hub.active) handling.hub.emit({ ...ofPartition(handling, partition), _tag: "Started", record })
}

export const settled = (
  handling: Handling<unknown>,
  partition: Partition,
  record: ConsumerRecord,
  { settlement, attempts, failure, target }: Pick<Settled, "settlement" | "attempts" | "failure" | "target">
): void => {
  handling.metrics.settled(partition, { settlement, attempts, target })
  if (settlement === "Handled" && !handling.hub.active) return
  const at = ofPartition(handling, partition)
  handling.hub.emit({ ...at, _tag: "Settled", record, settlement, attempts, failure, target })
}

/** A record that was handled at the first attempt: builds nothing while nobody listens. */
export const handledAtOnce = (handling: Handling<unknown>, partition: Partition, record: ConsumerRecord): void => {
  if (handling.hub.active) settled(handling, partition, record, firstAttempt)
  else handling.metrics.handledAtOnce(partition.counters)
}

const firstAttempt = { settlement: "Handled", attempts: 1, failure: undefined } as const

/** What a delivery has used up of its processing budget. Not finite while it waits for something that is not handling. */
export const spentMillis = (handling: Handling<unknown>, timer: Timer): number =>
  handling.clock.currentTimeMillisUnsafe() - timer.startedMillis

/** A call of the handler has returned, whatever came of it. `beforeMillis`: what the delivery had spent before it. */
export const called = (handling: Handling<unknown>, timer: Timer, beforeMillis = 0): void => {
  if (!handling.metrics.enabled) return
  handling.metrics.handlerReturned(spentMillis(handling, timer) - beforeMillis)
}

export const attemptFailed = (
  handling: Handling<unknown>,
  partition: Partition,
  record: ConsumerRecord,
  attempt: number,
  failure: Failure,
  retryInMillis: number | undefined
): void => {
  handling.metrics.attemptFailed(partition.topic, failure)
  if (!handling.hub.active) return
  handling.hub.emit({
    ...ofPartition(handling, partition),
    _tag: "AttemptFailed",
    record,
    attempt,
    failure,
    retryInMillis
  })
}

export const committed = (handling: Handling<unknown>, partition: Partition): void => {
  if (!handling.hub.active) return
  handling.hub.emit({ ...ofPartition(handling, partition), _tag: "Committed", offset: partition.committed })
}

export const publishFailed = (
  handling: Handling<unknown>,
  partition: Partition,
  record: ConsumerRecord,
  topic: string,
  error: BrokerError,
  attempt: number
): void => {
  handling.metrics.publishFailed(topic)
  handling.hub.emit({ ...ofPartition(handling, partition), _tag: "PublishFailed", record, topic, error, attempt })
}

/** What concerns a partition, and only happens to it now and then. */
type PartitionEvent = Extract<EventBusEvent, { readonly generation: number }>
type RareEvent = Exclude<PartitionEvent, { readonly record: ConsumerRecord } | { readonly _tag: "Committed" }>
type Details<Event> = Event extends unknown ? Omit<Event, keyof ReturnType<typeof ofPartition>> : never

export const report = (
  handling: Handling<unknown>,
  at: TopicPartition & { readonly generation: number },
  event: Details<RareEvent>
): void => {
  if (event._tag === "ProcessingBudgetReached") handling.metrics.budgetReached()
  if (event._tag === "RecordsGone" && event.gone !== undefined) handling.metrics.recordsGone(at, Number(event.gone))
  handling.hub.emit({ ...ofPartition(handling, at), ...event })
}
