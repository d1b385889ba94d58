/** One delivery: interceptors around the listener, and what its failure means. */
import { Cause, type Duration, Effect, Option, Tracer } from "effect"
import type { EventEnvelope } from "../../EventEnvelope.ts"
import { around, type EventInterceptor } from "../../EventInterceptor.ts"
import type { EventRetryPolicy } from "../../EventRetryPolicy.ts"
import type { Shape as Registry } from "../../ListenerRegistry.ts"
import { UnroutableEvent } from "../../OutboxError.ts"

export interface DeliveryOptions {
  readonly registry: Registry
  readonly interceptors: ReadonlyArray<EventInterceptor>
  /** After so long a listener is interrupted and has failed. */
  readonly listenerTimeout: Duration.Input | undefined
}

export const makeDelivery = (options: DeliveryOptions): ((event: EventEnvelope) => Effect.Effect<unknown, unknown>) => {
  const within = around(options.interceptors)
  const limited = (effect: Effect.Effect<unknown, unknown>) =>
    options.listenerTimeout === undefined ? effect : Effect.timeout(effect, options.listenerTimeout)
  const listen = (event: EventEnvelope) =>
    Effect.suspend(() => {
      const listener = options.registry.listenerFor(event.aggregateType, event.eventType)
      return listener === undefined
        ? Effect.fail(new UnroutableEvent({ aggregateType: event.aggregateType, eventType: event.eventType }))
        : limited(listener(event))
    })
  return (event) => underWriterSpan(event, within(event, listen(event)))
}

/** Continues the trace of the write, where it left one. */
const underWriterSpan = <E>(event: EventEnvelope, delivery: Effect.Effect<unknown, E>): Effect.Effect<unknown, E> => {
  const traceparent = event.headers.get("traceparent")
  if (traceparent === undefined) return delivery
  const trace = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent)
  if (trace === null) return delivery
  const [, traceId, spanId, flags] = trace as unknown as [string, string, string, string]
  const sampled = (Number.parseInt(flags, 16) & 1) === 1
  return Effect.withParentSpan(delivery, Tracer.externalSpan({ traceId, spanId, sampled }))
}

/** What becomes of an event whose delivery failed. `Postpone`: nothing is marked, and no attempt counts. */
export type FailureOutcome =
  | { readonly _tag: "Postpone"; readonly delayMillis: number; readonly error: string }
  | { readonly _tag: "Retry"; readonly delayMillis: number; readonly error: string }
  | { readonly _tag: "Dead"; readonly error: string }

/** `attempts` counts the failed deliveries before this one; `maxAttempts` is the number of deliveries in all. */
export const decideFailure = (
  cause: Cause.Cause<unknown>,
  attempts: number,
  policy: { readonly maxAttempts: number; readonly retryPolicy: EventRetryPolicy },
  random: number
): FailureOutcome => {
  const error = errorText(cause)
  if (isTagged(cause, outage)) return { _tag: "Postpone", delayMillis: outagePauseMillis, error }
  if (isTagged(cause, hopeless) || attempts + 1 >= policy.maxAttempts) return { _tag: "Dead", error }
  const delay = policy.retryPolicy(attempts + 1, random)
  // A policy of the user's that returns no usable number must not strand the event.
  return { _tag: "Retry", delayMillis: Number.isFinite(delay) ? Math.max(0, delay) : 60_000, error }
}

const hopeless = new Set(["UnroutableEvent", "PoisonEvent"])
const outage = new Set(["DownstreamUnavailable"])

/** Between two tries while the destination is down. The destination's client has waited for its own timeout before each. */
const outagePauseMillis = 1000

const isTagged = (cause: Cause.Cause<unknown>, tags: ReadonlySet<string>): boolean => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return typeof error === "object" && error !== null && "_tag" in error && tags.has(String(error._tag))
}

const errorText = (cause: Cause.Cause<unknown>): string => {
  const squashed = Cause.squash(cause)
  if (squashed instanceof Error) return `${squashed.name}: ${squashed.message}`
  try {
    return typeof squashed === "string" ? squashed : (JSON.stringify(squashed) ?? String(squashed))
  } catch {
    return Cause.pretty(cause)
  }
}
