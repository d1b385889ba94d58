/**
 * Writes events in the caller's transaction: committed together with the data, or not at all.
 *
 * Owns no state. `write` is `writeAll` of one.
 */
import { Context, Effect, Layer, Option, Tracer } from "effect"
import * as EventEnvelope from "./EventEnvelope.ts"
import type { TypeName } from "./EventType.ts"
import { InvalidEnvelope, type NotInTransaction, type OutboxStoreError, type PayloadTooLarge } from "./OutboxError.ts"
import { OutboxStore } from "./OutboxStore.ts"
import { TxContext } from "./TxContext.ts"
import { guarded, noop, type WriteRefused, type WriterHook } from "./WriterHook.ts"

export type WriteError = NotInTransaction | InvalidEnvelope | PayloadTooLarge | WriteRefused | OutboxStoreError

export interface WriterOptions {
  /** Default `NOOP`. */
  readonly hook?: WriterHook
  /** Rows are inserted as claimed by this owner, whose hot path delivers them (ruling 65). Default: unclaimed. */
  readonly claimedBy?: string
}

type Written = EventEnvelope.EventEnvelope | EventEnvelope.Input

export class OutboxWriter extends Context.Service<
  OutboxWriter,
  {
    /** The event's id, or undefined when a hook suppressed it. */
    readonly write: {
      (event: Written): Effect.Effect<string | undefined, WriteError>
      (eventType: TypeName, payloadJson: string): Effect.Effect<string | undefined, WriteError>
    }
    /** The ids in order; empty when suppressed. All or none are inserted. */
    readonly writeAll: (events: ReadonlyArray<Written>) => Effect.Effect<ReadonlyArray<string>, WriteError>
  }
>()("@eventbus/outbox/OutboxWriter") {}

export type Shape = OutboxWriter["Service"]

const isEnvelope = (event: Written): event is EventEnvelope.EventEnvelope =>
  "occurredAtMillis" in event && "contentType" in event && event.payload instanceof Uint8Array

export const make: (options?: WriterOptions) => Effect.Effect<Shape, never, OutboxStore | TxContext> =
  Effect.fnUntraced(function* (options) {
    const store = yield* OutboxStore
    const tx = yield* TxContext
    const hook = options?.hook ?? noop

    const insert = Effect.fnUntraced(function* (events: ReadonlyArray<EventEnvelope.EventEnvelope>) {
      const execute = yield* tx.currentConnection
      for (const statement of store.insertStatements(events, options?.claimedBy)) {
        yield* execute(statement.text, statement.params)
      }
      if (hook.afterWrite !== undefined) yield* guarded(hook, "afterWrite", events)
      if (hook.afterCommit !== undefined) yield* tx.afterCommit(guarded(hook, "afterCommit", events))
      if (hook.afterRollback !== undefined) yield* tx.afterRollback(guarded(hook, "afterRollback", events))
      return events.map((event) => event.eventId)
    })

    const writeAll: Shape["writeAll"] = Effect.fnUntraced(function* (events) {
      yield* tx.currentConnection
      const trace = yield* traceparent
      const made: Array<EventEnvelope.EventEnvelope> = []
      for (const event of events) made.push(yield* envelopeOf(event, trace))
      const changed = hook.beforeWrite === undefined ? made : yield* hook.beforeWrite(made)
      if (changed === null || changed.length === 0) return []
      const chosen = changed === made ? made : yield* Effect.forEach(changed, EventEnvelope.check)
      const twice = duplicateId(chosen)
      if (twice !== undefined) {
        return yield* new InvalidEnvelope({ field: "eventId", detail: `'${twice}' occurs twice in one write` })
      }
      return yield* insert(chosen)
    })

    return OutboxWriter.of({
      writeAll,
      write: (event: Written | TypeName, payloadJson?: string) =>
        Effect.map(
          writeAll([payloadJson === undefined ? (event as Written) : { eventType: event as TypeName, payloadJson }]),
          (ids) => ids[0]
        )
    })
  })

export const layer = (options?: WriterOptions): Layer.Layer<OutboxWriter, never, OutboxStore | TxContext> =>
  Layer.effect(OutboxWriter, make(options))

const envelopeOf = (event: Written, trace: string | undefined) =>
  Effect.map(isEnvelope(event) ? EventEnvelope.check(event) : EventEnvelope.make(event), (envelope) =>
    trace === undefined || envelope.headers.has("traceparent")
      ? envelope
      : { ...envelope, headers: new Map([...envelope.headers, ["traceparent", trace]]) }
  )

const duplicateId = (events: ReadonlyArray<EventEnvelope.EventEnvelope>): string | undefined => {
  if (events.length < 2) return undefined
  const seen = new Set<string>()
  return events.find((event) => seen.size === seen.add(event.eventId).size)?.eventId
}

/** The W3C header of the caller's own span. The spans that the SQL client opens by itself do not make a trace. */
const traceparent: Effect.Effect<string | undefined> = Effect.map(Effect.serviceOption(Tracer.ParentSpan), (found) => {
  let span = Option.getOrUndefined(found)
  while (span?._tag === "Span" && span.name === "sql.transaction") span = Option.getOrUndefined(span.parent)
  if (span === undefined || !/^[0-9a-f]{32}$/.test(span.traceId)) return undefined
  return `00-${span.traceId}-${span.spanId}-${span.sampled ? "01" : "00"}`
})
