/**
 * The path of one record through a binding, delivery by delivery, built from the connector's events.
 */
import type { EventBusEvent } from "@eventbus/core"
import type { EventRecorder, Position, RecordEvent } from "./eventRecorder.ts"
import type { Definition } from "./sources.ts"
import * as Sources from "./sources.ts"

/** One delivery of a record, on the main topic or in a tier. The last one may be waiting for its due time. */
export interface DeliveryStep {
  /** Name of the binding. */
  readonly binding: string
  /** Retry tier; 0 is the main topic. */
  readonly tier: number
  /** Number of the delivery in the tier, from 1. */
  readonly delivery: number
  /** Topic in which the record lies. */
  readonly topic: string
  /** Undefined while a copy waits: its partition is not known yet. */
  readonly partition: number | undefined
  /** Undefined while a copy waits: its offset is not known yet. */
  readonly offset: bigint | undefined
  /** Start of the delivery, or the due time while it waits, in milliseconds since the bus started. */
  readonly atMillis: number
  /** End of the delivery in milliseconds since the bus started; undefined before its end. */
  readonly endedMillis: number | undefined
  /** Handler calls so far. */
  readonly attempts: number
  /**
   * How it ended. `CutOff`: the consumer died or lost the partition first. `Running`: the handler runs, or waits between two attempts. `Waiting`: it
   * is not due yet.
   */
  readonly outcome: EventBusEvent.Settlement | "CutOff" | "Running" | "Waiting"
  /** Class and message of the last error. */
  readonly failure: { readonly className: string; readonly message: string } | undefined
  /** Topic of the copy that ended the delivery. */
  readonly target: string | undefined
}

/** The deliveries in chronological order. */
export const ofRecord = (
  recorder: EventRecorder,
  definition: Definition,
  origin: Position
): ReadonlyArray<DeliveryStep> => {
  const steps: Array<DeliveryStep> = []
  /** The next delivery according to the last copy. */
  let next: EventBusEvent.Target | undefined
  /** Generation of the assignment in which the last delivery began. */
  let generation: number | undefined
  for (const { atMillis, event } of recorder.ofOrigin(definition.name, origin)) {
    const last = steps.at(-1)
    const isOpen = last?.outcome === "Running" && isIn(last, event)
    switch (event._tag) {
      case "Started":
        // A transaction starts again with each attempt in the same assignment; in a new assignment the delivery before it was cut off.
        if (isOpen && event.generation === generation) break
        if (last?.outcome === "Running") steps[steps.length - 1] = { ...last, outcome: "CutOff" }
        steps.push(begun(definition, event, atMillis, next))
        generation = event.generation
        break
      case "AttemptFailed":
        if (isOpen) steps[steps.length - 1] = { ...last, attempts: event.attempt, failure: event.failure }
        break
      case "Settled": {
        const hop = isOpen ? last : begun(definition, event, atMillis, next)
        if (isOpen) steps.pop()
        const { settlement, attempts, failure, target } = event
        steps.push({
          ...hop,
          attempts,
          endedMillis: atMillis,
          outcome: settlement,
          failure,
          target: target?.topic
        })
        next = settlement === "Routed" ? target : next
      }
    }
  }
  return [...steps, ...waiting(definition, steps.at(-1), next)]
}

const isIn = (hop: DeliveryStep, { record }: RecordEvent): boolean =>
  hop.topic === record.topic && hop.partition === record.partition && hop.offset === record.offset

const begun = (
  definition: Definition,
  { record }: RecordEvent,
  atMillis: number,
  next: EventBusEvent.Target | undefined
): DeliveryStep => {
  const tier = Sources.tierOf(definition, record.topic)
  const known = next?.topic === record.topic ? next : undefined
  return {
    binding: definition.name,
    tier: tier === undefined ? 0 : (known?.tier ?? tier.first),
    delivery: tier === undefined ? 1 : (known?.attempt ?? 1),
    topic: record.topic,
    partition: record.partition,
    offset: record.offset,
    atMillis,
    endedMillis: undefined,
    attempts: 0,
    outcome: "Running",
    failure: undefined,
    target: undefined
  }
}

/** The next delivery of a copy that waits in a retry topic. */
const waiting = (
  definition: Definition,
  last: DeliveryStep | undefined,
  next: EventBusEvent.Target | undefined
): ReadonlyArray<DeliveryStep> => {
  if (last?.outcome !== "Routed" || next === undefined) return []
  const { tier = 0, attempt = 1 } = next
  const waitMillis = tier === 0 ? 0 : definition.tiers.waitMillis(tier, attempt)
  return [
    {
      binding: definition.name,
      tier,
      delivery: attempt,
      topic: next.topic,
      partition: undefined,
      offset: undefined,
      atMillis: (last.endedMillis ?? last.atMillis) + waitMillis,
      endedMillis: undefined,
      attempts: 0,
      outcome: "Waiting",
      failure: undefined,
      target: undefined
    }
  ]
}
