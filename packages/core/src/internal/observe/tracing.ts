/**
 * Makes the spans of a binding: one for each call of its handler, as a child of the publisher's span or linked to it.
 *
 * Without a tracer the handler is called as it is. With a tracer, a record that is not sampled costs one look at its headers, and spans that its handler makes are
 * not recorded either.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import * as Tracing from "../../Tracing.ts"
import * as UserFunction from "../../UserFunction.ts"
import * as CheckedSteps from "../failure/checkedSteps.ts"
import type { Receiver } from "../record/decoding.ts"
import * as TraceContext from "../record/traceContext.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

/** The consumer that calls the handler. */
export interface Caller {
  readonly definition: Pick<BindingDefinition<unknown>, "cluster" | "name">
  readonly groupId: string
  readonly receiver: Receiver
}

export interface BindingTracing {
  /** Wraps one call of the handler for one record. */
  readonly call: <A, E, R>(
    caller: Caller,
    record: ConsumerRecord,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** Wraps one call of the handler for several records. */
  readonly callBatch: <A, E, R>(
    caller: Caller,
    records: ReadonlyArray<ConsumerRecord>,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** Makes the headers of a copy name the span of the call that failed. */
  readonly withTraceHeaders: (record: ConsumerRecord, headers: Array<Header>) => Array<Header>
}

/** Links of one span; OpenTelemetry's SDKs keep no more by default. */
const maxLinks = 128

/** Undefined when the program has no tracer. */
export const make: Effect.Effect<BindingTracing | undefined> = Effect.gen(function* () {
  const context = yield* Effect.context()
  const tracer = CheckedSteps.programTracer(context)
  if (tracer === undefined) return undefined
  const { sampleRatio, relation } = yield* Tracing.Settings
  const calls = new WeakMap<ConsumerRecord, Tracer.Span>()
  const isInSample = sampler(sampleRatio)
  const sampling = Context.make(Tracer.Tracer, tracer).pipe(Context.add(References.TracerEnabled, true))

  const inSpan = <A, E, R>(
    name: string,
    options: Tracer.SpanOptionsNoTrace,
    effect: (span: Tracer.Span) => Effect.Effect<A, E, R>
  ) =>
    Effect.provideContext(
      Effect.useSpan(name, { kind: "consumer", ...options }, (span) =>
        Effect.provideService(UserFunction.checkSteps(effect(span)), Tracer.ParentSpan, span)
      ),
      sampling
    )

  return {
    call: (caller, record, effect) => {
      const parent = TraceContext.read(record.headers)
      if (parent === undefined && !isInSample(record)) return effect
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
      const isSampled = parents.length === 0 ? isInSample(first) : parents.some(({ sampled }) => sampled)
      if (!isSampled) return effect
      const links = parents.slice(0, maxLinks).map((span) => ({ span, attributes: {} }))
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
 * Turns tracing off for everything that runs in a partition, except for sampled calls. It also takes the program's tracer out of the context, because a tracer may do
 * work at every step of a fiber.
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

/** Decides by the record's coordinates, so that every attempt of a record is decided the same way. */
const sampler = (ratio: number) => {
  if (ratio >= 1) return () => true
  if (!(ratio > 0)) return () => false
  const below = ratio * 0x1_0000_0000
  return ({ partition, offset }: ConsumerRecord): boolean => {
    let hash = Math.imul(Number(offset) ^ Math.imul(partition + 1, 0x9e37_79b1), 0x85eb_ca6b)
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35)
    return (hash ^ (hash >>> 16)) >>> 0 < below
  }
}

/** Attribute names of OpenTelemetry's messaging conventions. The record key is left out: it may identify a person. */
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
