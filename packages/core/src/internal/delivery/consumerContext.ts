/**
 * The parts that all partitions of one consumer share while they handle records, and the reports of what happens to a record.
 */
import type * as Clock from "effect/Clock"
import type * as Effect from "effect/Effect"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, TopicPartition } from "../../ConsumerRecord.ts"
import { DltPublish } from "../../EventBusError.ts"
import type { EventBusEvent } from "../../EventBusEvent.ts"
import type { Failure } from "../../Failure.ts"
import type { Interceptor } from "../../Interceptor.ts"
import type { BindingMetrics } from "../observe/bindingMetrics.ts"
import type { EventHub } from "../observe/eventHub.ts"
import type { BindingFailures } from "../observe/ongoingFailures.ts"
import type { BindingTracing } from "../observe/tracing.ts"
import type { Committer } from "../partition/committer.ts"
import type { HeldRecords } from "../partition/heldRecords.ts"
import type { Partition } from "../partition/partition.ts"
import type { CopyPublisher } from "../publish/copyPublisher.ts"
import type { Receiver } from "../record/decoding.ts"
import { type DeliveryResult, staysInPlace } from "../record/deliveryResult.ts"
import type * as ReplayHeaders from "../record/replayHeaders.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import type { ConcurrencyLimits } from "../slots/concurrencyLimits.ts"
import type { DeliveryContext } from "../slots/deliveryContext.ts"

export interface ConsumerContext<R> {
  readonly definition: BindingDefinition<R>
  readonly receiver: Receiver
  /** The index of the consumer in its binding. */
  readonly consumer: number
  readonly hub: EventHub
  readonly metrics: BindingMetrics
  /** Failures that last, for health, and the newest one of a handler. */
  readonly failures: BindingFailures
  /** Undefined when the program has no tracer. */
  readonly tracing: BindingTracing | undefined
  /** They run around each call of the handler, the outermost first. */
  readonly interceptors: ReadonlyArray<Interceptor>
  readonly clock: Clock.Clock
  /** How far the wall clock was set back while this consumer ran, in milliseconds. */
  readonly setBackMillis: () => number
  readonly committer: Committer
  readonly copyPublisher: CopyPublisher
  /** Hears of each dead letter that is stored; undefined when the binding has no use for it. */
  readonly onDeadLetter: ((stored: ConsumerRecord) => void) | undefined
  /** Whose replays are believed on the main topic: those of this group on this cluster. */
  readonly replayReader: ReplayHeaders.Reader
  /** The group that the session is in. */
  readonly groupId: string
  /** A record halted its partition: the binding shows that, and halts the partition again when it comes back. */
  readonly onHalted: (partition: Partition) => Effect.Effect<void>
  /** Adds reason `operator` to the whole binding. */
  readonly pauseBinding: Effect.Effect<void>
  /** A fiber of the session died of a defect: the session cannot be trusted any more, and ends. */
  readonly onDefect: (defect: unknown) => Effect.Effect<void>
  /** The records that hold their partitions. */
  readonly held: HeldRecords
  /** The binding's `maxInFlight` and circuit breaker, and a tier's `concurrency`. */
  readonly limits: ConcurrencyLimits
}

/** Comes first in the events: engines copy an object fastest into an empty one. */
const ofPartition = (
  context: ConsumerContext<unknown>,
  partition: TopicPartition & { readonly generation: number }
) => ({
  cluster: context.definition.cluster,
  binding: context.definition.name,
  consumer: context.consumer,
  topic: partition.topic,
  partition: partition.partition,
  generation: partition.generation
})

export const reportStarted = (
  context: ConsumerContext<unknown>,
  partition: Partition,
  record: ConsumerRecord
): void => {
  if (context.hub.active) context.hub.emit({ ...ofPartition(context, partition), _tag: "Started", record })
}

export const reportSettled = (
  context: ConsumerContext<unknown>,
  partition: Partition,
  record: ConsumerRecord,
  result: Omit<DeliveryResult, "copy">
): void => {
  const { settlement, attempts, failure, target, progress } = result
  if (result.wasHeld && staysInPlace(result)) return
  context.metrics.settled(partition, result)
  // The delivery that a decision of an operator ends was counted when its record halted.
  if (failure !== undefined && !result.wasHeld && settlement !== "HeldByBreaker" && settlement !== "Abandoned") {
    context.metrics.deliveryFailed(partition.topic, failure)
  }
  if (settlement === "Handled" && !context.hub.active) return
  const { definition, consumer, hub } = context
  // Written out, unlike the other events: every record that fails has one, and a copied object that grows is allocated several times.
  hub.emit({
    _tag: "Settled",
    cluster: definition.cluster,
    binding: definition.name,
    consumer,
    topic: partition.topic,
    partition: partition.partition,
    generation: partition.generation,
    record,
    settlement,
    attempts,
    failure,
    target,
    ...progress
  })
}

/** Reports a record that was handled at the first attempt. Builds nothing while nobody listens. */
export const reportHandledAtOnce = (
  context: ConsumerContext<unknown>,
  partition: Partition,
  record: ConsumerRecord
): void => {
  if (context.hub.active) reportSettled(context, partition, record, firstAttempt)
  else context.metrics.handledAtOnce(partition.counters)
}

const firstAttempt = { settlement: "Handled", attempts: 1, failure: undefined } as const

/**
 * Reports that a call of the handler has returned, with success or not; nothing when the attempt has not reached its handler. `beforeMillis`: how much of its budget
 * the delivery had used before.
 */
export const reportCall = (context: ConsumerContext<unknown>, delivery: DeliveryContext, beforeMillis = 0): void => {
  if (!context.metrics.enabled || !delivery.wasAdmitted) return
  context.metrics.handlerReturned(delivery.clock.spentMillis() - beforeMillis)
}

export const reportAttemptFailed = (
  context: ConsumerContext<unknown>,
  partition: Partition,
  record: ConsumerRecord,
  attempt: number,
  failure: Failure,
  retryInMillis: number | undefined
): void => {
  context.failures.newest.failed(record, context.receiver.retryPosition(record).origin, failure)
  if (!context.hub.active) return
  context.hub.emit({
    ...ofPartition(context, partition),
    _tag: "AttemptFailed",
    record,
    attempt,
    failure,
    retryInMillis
  })
}

export const reportCommitted = (context: ConsumerContext<unknown>, partition: Partition): void => {
  if (!context.hub.active) return
  context.hub.emit({ ...ofPartition(context, partition), _tag: "Committed", offset: partition.committed })
}

export const reportPublishFailed = (
  context: ConsumerContext<unknown>,
  partition: Partition,
  record: ConsumerRecord,
  { topic, isDeadLetter }: { readonly topic: string; readonly isDeadLetter: boolean },
  error: BrokerError,
  attempt: number
): void => {
  context.metrics.publishFailed(topic)
  const deadLetter = isDeadLetter ? refusedDeadLetter(context, record, topic, error) : undefined
  context.hub.emit({
    ...ofPartition(context, partition),
    _tag: "PublishFailed",
    ...{ record, topic, error, attempt, deadLetter }
  })
}

const refusedDeadLetter = (
  { definition }: ConsumerContext<unknown>,
  record: ConsumerRecord,
  topic: string,
  cause: BrokerError
): DltPublish =>
  new DltPublish({
    binding: BindingKey.label(definition),
    topic,
    sourceTopic: record.topic,
    sourcePartition: record.partition,
    sourceOffset: record.offset,
    cause
  })

/** An event of a partition that is not about one record. */
type PartitionEvent = Extract<EventBusEvent, { readonly generation: number }>
type RareEvent = Exclude<PartitionEvent, { readonly record: ConsumerRecord } | { readonly _tag: "Committed" }>
type Details<Event> = Event extends unknown ? Omit<Event, keyof ReturnType<typeof ofPartition>> : never

export const report = (
  context: ConsumerContext<unknown>,
  at: TopicPartition & { readonly generation: number },
  event: Details<RareEvent>
): void => {
  if (event._tag === "ProcessingBudgetReached") context.metrics.budgetReached()
  if (event._tag === "RecordsGone") context.metrics.recordsGone(at, Number(event.gone ?? event.keys ?? 0))
  context.hub.emit({ ...ofPartition(context, at), ...event })
}
