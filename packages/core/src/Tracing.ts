/**
 * Traces through Kafka: W3C Trace Context in the headers of records, and spans by OpenTelemetry's conventions for messaging.
 *
 * Spans are made when the program has a tracer (any layer that provides Effect's `Tracer`), and for records that are sampled. A record goes on in the trace of
 * whoever published it: from the main topic through retry topics to the dead letter topic, and on when it is replayed. Without a tracer its trace headers pass through
 * unchanged.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import type { Producer } from "./Broker.ts"
import type { Header, ProducerRecord } from "./ConsumerRecord.ts"
import * as TraceContext from "./internal/record/traceContext.ts"

/** How the connector traces. */
export interface Options {
  /**
   * The share of records without trace headers that begin a trace, from 0 to 1. Default 1. Records that have them do as these say. All attempts of a record
   * are decided alike.
   */
  readonly sampleRatio: number
  /**
   * How the span of a handler's call relates to the one that published the record: as its child (default), or as the root of a trace of its own that is linked
   * to it. Calls for several records are always linked.
   */
  readonly relation: "parent" | "link"
}

/** Read when a consumer of a binding starts. */
export const Settings = Context.Reference<Options>("@eventbus/core/Tracing", {
  defaultValue: () => ({ sampleRatio: 1, relation: "parent" })
})

/** Sets some of the options for the bindings that it is provided to. */
export const layer = (options: Partial<Options>): Layer.Layer<never> =>
  Layer.effect(
    Settings,
    Effect.map(Settings, (settings) => ({ ...settings, ...options }))
  )

/** The span that headers of a record name, for consumers that are no binding. Malformed ones name none. */
export const parentOf = (headers: ReadonlyArray<Header>): Option.Option<Tracer.ExternalSpan> =>
  Option.fromUndefinedOr(TraceContext.read(headers))

/** Puts the current span into the record's headers, in place of what they named; as it is when there is none. */
export const inject = (record: ProducerRecord): Effect.Effect<ProducerRecord> =>
  Effect.map(Effect.context(), (context) => {
    const span = TraceContext.currentSpan(context)
    return span === undefined ? record : withSpan(record, span)
  })

/**
 * A producer whose records carry the span that sends them: a span of kind `producer` for each call, within a span that is sampled; otherwise just the headers.
 * `CurrentTransaction` is one already.
 */
export const producer = (self: Producer): Producer => ({
  send: (record) =>
    Effect.withFiber(({ context }) =>
      // Asked for each record: without a span there is nothing to write.
      TraceContext.currentSpan(context) === undefined
        ? self.send(record)
        : sending([record], ([traced = record]) => self.send(traced))
    ),
  sendAll: (records) => sending(records, self.sendAll),
  sendEach: (records, onAnswer) => sending(records, (traced) => self.sendEach(traced, onAnswer))
})

const sending = <A, E>(
  records: ReadonlyArray<ProducerRecord>,
  send: (records: ReadonlyArray<ProducerRecord>) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.flatMap(Effect.context(), (context) => {
    const current = TraceContext.currentSpan(context)
    const hasTracer = Context.getOrUndefined(context, Tracer.Tracer) !== undefined
    const [first] = records
    if (current === undefined || first === undefined) return send(records)
    if (!current.sampled || !hasTracer) return send(records.map((record) => withSpan(record, current)))
    const attributes = {
      "messaging.system": "kafka",
      "messaging.operation.name": "send",
      "messaging.operation.type": "send",
      "messaging.destination.name": first.topic,
      ...(records.length === 1 ? {} : { "messaging.batch.message_count": records.length })
    }
    return Effect.useSpan(`send ${first.topic}`, { kind: "producer", parent: current, attributes }, (span) =>
      send(records.map((record) => withSpan(record, span)))
    )
  })

const withSpan = (record: ProducerRecord, span: Tracer.AnySpan): ProducerRecord => ({
  ...record,
  headers: TraceContext.write(record.headers ?? [], span)
})
