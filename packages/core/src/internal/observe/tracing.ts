/**
 * The spans of a binding: one for each call of its handler, as a child of whoever published the record or linked to it.
 *
 * Without a tracer there is none of this: the handler is called as it is. With one, a record that is not sampled costs a look at its headers; spans that its handler
 * makes are not recorded either.
 */
import { Context, Effect, References, Tracer } from "effect"
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import * as Tracing from "../../Tracing.ts"
import type { Receiver } from "../record/decoding.ts"
import * as TraceContext from "../record/traceContext.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

/** Who calls. */
export interface Caller {
  readonly definition: Pick<BindingDefinition<unknown>, "cluster" | "name">
  readonly groupId: string
  readonly receiver: Receiver
}

export interface BindingTracing {
  /** One call of the handler for one record. */
  readonly call: <A, E, R>(
    caller: Caller,
    record: ConsumerRecord,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** One call of the handler for several records. */
  readonly callBatch: <A, E, R>(
    caller: Caller,
    records: ReadonlyArray<ConsumerRecord>,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** Headers of a copy of the record: they name the span of the call that failed. */
  readonly withTraceHeaders: (record: ConsumerRecord, headers: ReadonlyArray<Header>) => ReadonlyArray<Header>
}

/** Links of one span: what OpenTelemetry's SDKs keep by default. */
const mostLinks = 128

/** Undefined when the program has no tracer. */
export const make: Effect.Effect<BindingTracing | undefined> = Effect.gen(function* () {
  const context = yield* Effect.context()
  const tracer = Context.getOrUndefined(context, Tracer.Tracer)
  if (tracer === undefined) return undefined
  const { sampleRatio, relation } = yield* Tracing.Settings
  const calls = new WeakMap<ConsumerRecord, Tracer.Span>()
  const isChosen = chooser(sampleRatio)
  const sampling = Context.make(Tracer.Tracer, tracer).pipe(Context.add(References.TracerEnabled, true))

  const inSpan = <A, E, R>(
    name: string,
    options: Tracer.SpanOptionsNoTrace,
    effect: (span: Tracer.Span) => Effect.Effect<A, E, R>
  ) =>
    Effect.provideContext(
      Effect.useSpan(name, { kind: "consumer", ...options }, (span) =>
        Effect.provideService(effect(span), Tracer.ParentSpan, span)
      ),
      sampling
    )

  return {
    call: (caller, record, effect) => {
      const parent = TraceContext.read(record.headers)
      if (parent === undefined && !isChosen(record)) return effect
      if (parent?.sampled === false) return Effect.provideService(effect, Tracer.ParentSpan, parent)
      const attributes = ofRecord(caller, record)
      return inSpan(`process ${record.topic}`, { attributes, ...related(parent, relation) }, (span) => {
        calls.set(record, span)
        return effect
      })
    },
    callBatch: (caller, records, effect) => {
      const [first] = records
      if (first === undefined) return effect
      const parents = records.flatMap(({ headers }) => TraceContext.read(headers) ?? [])
      const isSampled = parents.length === 0 ? isChosen(first) : parents.some(({ sampled }) => sampled)
      if (!isSampled) return effect
      const links = parents.slice(0, mostLinks).map((span) => ({ span, attributes: {} }))
      const attributes = { ...ofBatch(caller, first), "messaging.batch.message_count": records.length }
      return inSpan(`process ${first.topic}`, { root: true, links, attributes }, () => effect)
    },
    withTraceHeaders: (record, headers) => {
      const span = calls.get(record)
      return span === undefined ? headers : TraceContext.write(headers, span)
    }
  }
})

/**
 * Nothing that runs in a partition makes spans, except for the calls that are sampled. The program's tracer is not even there for the others: it may have to do something at
 * each step of a fiber.
 */
export const withoutTracing = <A, E, R>(
  { tracing }: { readonly tracing: BindingTracing | undefined },
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => (tracing === undefined ? effect : Effect.provideContext(effect, tracingDisabled))

const tracingDisabled = Context.make(Tracer.Tracer, Tracer.nativeTracer).pipe(
  Context.add(References.TracerEnabled, false)
)

const related = (
  parent: Tracer.ExternalSpan | undefined,
  relation: "parent" | "link"
): Pick<Tracer.SpanOptionsNoTrace, "parent" | "links" | "root"> => {
  if (parent === undefined) return { root: true }
  return relation === "parent" ? { parent } : { root: true, links: [{ span: parent, attributes: {} }] }
}

/** By the record's coordinates, so that every attempt of a record is decided alike. */
const chooser = (ratio: number) => {
  if (ratio >= 1) return () => true
  if (!(ratio > 0)) return () => false
  const below = ratio * 0x1_0000_0000
  return ({ partition, offset }: ConsumerRecord): boolean => {
    let hash = Math.imul(Number(offset) ^ Math.imul(partition + 1, 0x9e37_79b1), 0x85eb_ca6b)
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35)
    return (hash ^ (hash >>> 16)) >>> 0 < below
  }
}

/** Names of OpenTelemetry's conventions for messaging. The key is not among them: it may say who somebody is. */
const ofBatch = ({ definition, groupId }: Caller, { topic, partition }: ConsumerRecord) => ({
  "messaging.system": "kafka",
  "messaging.operation.name": "process",
  "messaging.operation.type": "process",
  "messaging.destination.name": topic,
  "messaging.destination.partition.id": String(partition),
  "messaging.consumer.group.name": groupId,
  "eventbus.cluster": definition.cluster,
  "eventbus.binding": definition.name
})

const ofRecord = (caller: Caller, record: ConsumerRecord) => {
  const { tier, attempt } = caller.receiver.retryPosition(record)
  return {
    ...ofBatch(caller, record),
    "messaging.kafka.offset": Number(record.offset),
    ...(record.value === null
      ? { "messaging.kafka.message.tombstone": true }
      : { "messaging.message.body.size": record.value.length }),
    "eventbus.retry.tier": tier,
    "eventbus.retry.attempt": attempt
  }
}
