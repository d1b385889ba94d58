/** One delivery: finds the event's listener and calls it inside the interceptors, under the writer's span. */
import { UserFunction } from "@eventbus/core"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"
import type { EventInterceptor } from "../../EventInterceptor.ts"
import type { ListenerRegistry } from "../../ListenerRegistry.ts"
import { UnroutableEvent } from "../../OutboxError.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import { type Call, inInterceptors } from "./interceptors.ts"

interface CallOptions {
  readonly registry: ListenerRegistry["Service"]
  readonly interceptors: ReadonlyArray<EventInterceptor>
  /** The longest time of the listener, and of each hook of an interceptor. Undefined: no limit. */
  readonly listenerTimeout: Duration.Input | undefined
}

/** Delivers one event to its listener. Fails as the listener does, and with `UnroutableEvent` when there is none. */
export type CallListener = (event: EventEnvelope) => Effect.Effect<unknown, unknown>

export const makeCallListener = (options: CallOptions): CallListener => {
  const call = callWithin(options.listenerTimeout)
  const within = inInterceptors(options.interceptors, call)
  const listen = (event: EventEnvelope) =>
    Effect.suspend(() => {
      const listener = options.registry.listenerFor(event.aggregateType, event.eventType)
      return listener === undefined
        ? Effect.fail(new UnroutableEvent({ aggregateType: event.aggregateType, eventType: event.eventType }))
        : call(`listener ${listenerKeyOf(event)}`, () => listener(event))
    })
  return (event) => underWriterSpan(event, within(event, listen(event)))
}

/** Without a limit the call runs in the worker's own fiber, which costs least. */
const callWithin = (timeout: Duration.Input | undefined): Call =>
  timeout === undefined
    ? UserFunction.callEffect
    : (what, call) => UserFunction.runBounded(what, UserFunction.callEffect(what, call), { timeout })

/** The key of an event's listener in log and health: `aggregateType:eventType`. */
export const listenerKeyOf = (event: EventEnvelope): string => `${event.aggregateType}:${event.eventType}`

/** Continues the trace of the write when the event carries a `traceparent` header (W3C Trace Context). */
const underWriterSpan = <E>(event: EventEnvelope, delivery: Effect.Effect<unknown, E>): Effect.Effect<unknown, E> => {
  const traceparent = event.headers.get("traceparent")
  if (traceparent === undefined) return delivery
  const trace = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent)
  if (trace === null) return delivery
  const [, traceId, spanId, flags] = trace as unknown as [string, string, string, string]
  const sampled = (Number.parseInt(flags, 16) & 1) === 1
  return Effect.withParentSpan(delivery, Tracer.externalSpan({ traceId, spanId, sampled }))
}
