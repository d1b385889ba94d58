/**
 * The annotations of every log line that is written while a record is handled, the handler's own lines included (connector seed §4.13). The fiber gets them once,
 * not per record: offset and tier are read when a line is written.
 */
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { EventBusEvent } from "../../EventBusEvent.ts"
import type { Partition } from "../partition/partition.ts"
import * as BindingAnnotations from "../settings/bindingAnnotations.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"
import type { ConsumerContext } from "./consumerContext.ts"

type Annotations = Readonly<Record<string, unknown>>

/** Annotates the log lines of the effect with the record that `current` answers at the time. */
export const annotated = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  context: ConsumerContext<unknown>,
  partition: Partition,
  current: () => ConsumerRecord | undefined
): Effect.Effect<A, E, R> =>
  Effect.updateService(
    effect,
    References.CurrentLogAnnotations,
    (outer): Annotations =>
      printable({
        ...outer,
        ...BindingAnnotations.ofKey(context.definition),
        topic: partition.topic,
        partition: partition.partition,
        get offset() {
          return current()?.offset
        },
        consumerGroup: context.groupId,
        consumerInstance: context.receiver.consumerInstance,
        get retryTier() {
          const record = current()
          return record === undefined ? (partition.tier?.first ?? 0) : context.receiver.retryPosition(record).tier
        }
      })
  )

/** Node prints getters as `[Getter]`. With this, a logger that hands the annotations to the console shows their values. */
const printable = (annotations: Annotations): Annotations =>
  Object.defineProperty(annotations, Symbol.for("nodejs.util.inspect.custom"), { value: () => ({ ...annotations }) })

/** The binding of an event. */
export interface Source {
  readonly definition: BindingDefinition<unknown>
  readonly hostname: string
}

/** The annotations of a line about an event. */
export const ofEvent = (event: EventBusEvent, source: Source | undefined): Annotations => {
  const at = readFrom(event)
  return {
    ...BindingAnnotations.ofKey({ cluster: event.cluster, name: event.binding }),
    ...(at === undefined ? {} : { topic: at.topic, partition: at.partition }),
    ...("record" in event ? { offset: event.record.offset } : {}),
    ...("at" in event ? event.at : {}),
    ...(source === undefined ? {} : ofSource(event, at?.topic, source))
  }
}

/** The partition that the event is about. The topic of an event about a refused copy is that of the copy, so its record says it. */
const readFrom = (event: EventBusEvent): Pick<ConsumerRecord, "topic" | "partition"> | undefined => {
  if ("record" in event) return event.record
  return "topic" in event && "partition" in event ? event : undefined
}

const ofSource = (event: EventBusEvent, topic: string | undefined, { definition, hostname }: Source): Annotations => ({
  ...(topic === undefined
    ? { consumerGroup: definition.groupId }
    : { consumerGroup: Sources.groupOf(definition, topic), retryTier: Sources.tierOf(definition, topic)?.first ?? 0 }),
  ...("consumer" in event ? { consumerInstance: `${hostname}-${event.consumer}` } : {})
})
