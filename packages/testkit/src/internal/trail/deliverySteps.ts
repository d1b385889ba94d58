/**
 * The way of one record through a binding, delivery by delivery, put together from what the connector reported.
 */
import type { Binding, EventBusEvent } from "@eventbus/core"
import type { EventRecorder, Position, RecordEvent } from "./eventRecorder.ts"

/** One delivery of a record, on the main topic or in a tier; the last one may be yet to come. */
export interface DeliveryStep {
  readonly binding: string
  /** 0 is the main topic. */
  readonly tier: number
  /** Which delivery in the tier, from 1. */
  readonly delivery: number
  /** Where the record lies; the partition and offset of a copy that waits are not known yet. */
  readonly topic: string
  readonly partition: number | undefined
  readonly offset: bigint | undefined
  /** When it was handed to the handler, or, while it waits, when it is due. Milliseconds since the bus began. */
  readonly atMillis: number
  /** When it ended; undefined while it has not. */
  readonly endedMillis: number | undefined
  /** Handler calls so far. */
  readonly attempts: number
  /** `CutOff`: the consumer died, or lost the partition, first. `Running`: it is in the handler, or between two attempts. `Waiting`: not due yet. */
  readonly outcome: EventBusEvent.Settlement | "CutOff" | "Running" | "Waiting"
  /** Class and message of the error that it ended with. */
  readonly failure: { readonly className: string; readonly message: string } | undefined
  /** Topic of the copy. */
  readonly target: string | undefined
}

type Definition = Binding.Binding<unknown>["definition"]

/** In the order in which they happened. */
export const ofRecord = (
  recorder: EventRecorder,
  definition: Definition,
  origin: Position
): ReadonlyArray<DeliveryStep> => {
  const steps: Array<DeliveryStep> = []
  /** What the last copy said about the next delivery. */
  let next: EventBusEvent.Target | undefined
  /** Of the assignment in which the last delivery began. */
  let generation: number | undefined
  for (const { atMillis, event } of recorder.ofOrigin(definition.name, origin)) {
    const last = steps.at(-1)
    const isOpen = last?.outcome === "Running" && isIn(last, event)
    switch (event._tag) {
      case "Started":
        // A transaction begins anew with each attempt, in the same assignment; a new one means that the delivery before came to nothing.
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
  const tier = definition.tiers.ofTopic(record.topic)
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

/** The delivery that a copy in a retry topic is to have. */
const waiting = (
  { name, tiers }: Definition,
  last: DeliveryStep | undefined,
  next: EventBusEvent.Target | undefined
): ReadonlyArray<DeliveryStep> => {
  if (last?.outcome !== "Routed" || next === undefined) return []
  const delayMillis = tiers.ofTopic(next.topic)?.delayMillis ?? 0
  return [
    {
      binding: name,
      tier: next.tier ?? 0,
      delivery: next.attempt ?? 1,
      topic: next.topic,
      partition: undefined,
      offset: undefined,
      atMillis: (last.endedMillis ?? last.atMillis) + delayMillis,
      endedMillis: undefined,
      attempts: 0,
      outcome: "Waiting",
      failure: undefined,
      target: undefined
    }
  ]
}
