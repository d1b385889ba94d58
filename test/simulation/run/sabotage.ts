/**
 * Parts of planted bugs: changes to events, bindings, plans and copies.
 */
import type { Binding, Broker, CircuitBreaker, ConsumerRecord, EventBusEvent } from "@eventbus/core"
import { Effect } from "effect"
import type { BindingPlan, BreakerPlan, Scenario } from "../scenario/Scenario.ts"

type Event = Broker.ConsumerEvent

/** Rewrites chunks with records and passes every other event on. `odd` changes with every chunk. */
export const chunks =
  (rewrite: (chunk: Broker.RecordChunk, odd: boolean) => ReadonlyArray<Broker.RecordChunk>) => () => {
    let odd = false
    return (event: Event): Effect.Effect<ReadonlyArray<Event>> => {
      if (event._tag !== "Fetched" || event.chunk.records.length === 0) return Effect.succeed([event])
      odd = !odd
      return Effect.succeed(rewrite(event.chunk, odd).map((chunk): Event => ({ _tag: "Fetched", chunk })))
    }
  }

/** Runs the handler in the background, so that the connector believes it is done. */
export const withoutWaiting = <R>(binding: Binding.Binding<R>): Binding.Binding<R> => {
  const { handler } = binding.definition
  if (handler._tag !== "PerRecord") return binding
  const invoke: typeof handler.invoke = (...args) => {
    const invoked = handler.invoke(...args)
    return Effect.isEffect(invoked) ? Effect.forkDetach(Effect.ignore(Effect.delay(invoked, 1))) : invoked
  }
  return { ...binding, definition: { ...binding.definition, handler: { ...handler, invoke } } }
}

export const withHeader = (
  record: ConsumerRecord.ProducerRecord,
  key: string,
  value: string
): ConsumerRecord.ProducerRecord => ({
  ...record,
  headers: (record.headers ?? []).map((header) =>
    header.key === key ? { key, value: new TextEncoder().encode(value) } : header
  )
})

export const withBreaker =
  (change: (breaker: BreakerPlan) => BreakerPlan) =>
  (plan: BindingPlan): BindingPlan => ({
    ...plan,
    breaker: plan.breaker === undefined ? undefined : change(plan.breaker)
  })

export const changed = (
  { cluster, binding }: EventBusEvent.EventBusEvent,
  to: CircuitBreaker.State
): EventBusEvent.EventBusEvent => ({
  _tag: "BreakerChanged",
  ...{ cluster, binding, from: "CLOSED", to },
  snapshot: {
    ...{ state: to, generation: 1, calls: 1, failures: 1, slowCalls: 0, failureRate: 100, slowCallRate: 0 },
    ...{ sinceMillis: 0, nextProbeAtMillis: undefined }
  }
})

export const some = (wanted: (plan: Scenario["bindings"][number]) => boolean) => (scenario: Scenario) =>
  scenario.bindings.some(wanted)
