/**
 * The annotations of every log line while a record is handled, the handler's own lines included (connector seed §4.13). They are given to the fiber once, not per
 * record: offset and tier are read when a line is written.
 */
import { Effect, References } from "effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { EventBusEvent } from "../../EventBusEvent.ts"
import type { Partition } from "../partition/partition.ts"
import { type BindingDefinition, groupOf } from "../settings/bindingDefinition.ts"
import type { ConsumerContext } from "./consumerContext.ts"

type Annotations = Readonly<Record<string, unknown>>

/** Annotates what runs in the effect with the record that `current` names at the time. */
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
        ...ofBinding(context.definition.cluster, context.definition.name),
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

/** Node prints getters as `[Getter]`; a logger that hands the annotations to the console is to show their values. */
const printable = (annotations: Annotations): Annotations =>
  Object.defineProperty(annotations, Symbol.for("nodejs.util.inspect.custom"), { value: () => ({ ...annotations }) })

/** The annotations that name the binding of an event. */
export interface Source {
  readonly definition: BindingDefinition<unknown>
  readonly hostname: string
}

/** The annotations of a line about an event. */
export const ofEvent = (event: EventBusEvent, source: Source | undefined): Annotations => ({
  ...ofBinding(event.cluster, event.binding),
  ...("topic" in event && "partition" in event ? { topic: event.topic, partition: event.partition } : {}),
  ...("record" in event ? { offset: event.record.offset } : {}),
  ...(source === undefined ? {} : ofSource(event, source))
})

const ofBinding = (cluster: string, bindingName: string): Annotations => ({ cluster, bindingName })

const ofSource = (event: EventBusEvent, { definition, hostname }: Source): Annotations => ({
  ...("topic" in event && "partition" in event
    ? { consumerGroup: groupOf(definition, event.topic), retryTier: definition.tiers.ofTopic(event.topic)?.first ?? 0 }
    : { consumerGroup: definition.groupId }),
  ...("consumer" in event ? { consumerInstance: `${hostname}-${event.consumer}` } : {})
})
