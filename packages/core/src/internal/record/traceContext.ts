/**
 * W3C Trace Context in the headers of a record: `traceparent` and `tracestate`. Headers are untrusted input: a malformed header counts as absent.
 */
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import type { Header } from "../../ConsumerRecord.ts"
import * as HeaderValues from "./headerValues.ts"

const traceparent = "traceparent"
const tracestate = "tracestate"

/** The `tracestate` that came with a trace, as an annotation of the span that continues it. */
const State = Context.Reference<string | undefined>("@eventbus/core/TraceState", { defaultValue: () => undefined })

/** Version, trace id, span id, flags. A later version may append more after a dash. Version ff is invalid. */
const form = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const maxParentBytes = 256
const maxStateBytes = 512

const ascii = new TextDecoder("latin1")
const bytes = new TextEncoder()

/** The span that the headers of a record name; undefined when they name none. */
export const read = (headers: ReadonlyArray<Header>): Tracer.ExternalSpan | undefined => {
  const parent = HeaderValues.last(headers, traceparent)
  if (parent === undefined || parent === null || parent.length > maxParentBytes) return undefined
  const found = form.exec(ascii.decode(parent))
  if (found === null) return undefined
  const [, version, traceId = "", spanId = "", flags = "", more] = found
  if (version === "00" && more !== undefined) return undefined
  const state = HeaderValues.last(headers, tracestate)
  return Tracer.externalSpan({
    traceId,
    spanId,
    sampled: (Number.parseInt(flags, 16) & 1) === 1,
    annotations:
      state === undefined || state === null || state.length > maxStateBytes
        ? Context.empty()
        : Context.make(State, ascii.decode(state))
  })
}

/** The nearest ancestor span that may be propagated. Spans in between were made while tracing was off. */
const visible = (span: Tracer.AnySpan | undefined): Tracer.AnySpan | undefined => {
  let current = span
  while (current !== undefined && Context.get(current.annotations, Tracer.DisablePropagation)) {
    current = current._tag === "Span" ? Option.getOrUndefined(current.parent) : undefined
  }
  return current
}

/** The current span of a fiber's context. */
export const currentSpan = (context: Context.Context<never>): Tracer.AnySpan | undefined =>
  visible(Context.getOrUndefined(context, Tracer.ParentSpan))

/** The `tracestate` of a span, from the nearest ancestor that carries one. */
const stateOf = (span: Tracer.AnySpan): string | undefined => {
  for (let at: Tracer.AnySpan | undefined = span; at !== undefined; ) {
    const state = Context.get(at.annotations, State)
    if (state !== undefined) return state
    at = at._tag === "Span" ? Option.getOrUndefined(at.parent) : undefined
  }
  return undefined
}

/** Replaces the trace headers by ones that name `span`. */
export const write = (headers: ReadonlyArray<Header>, span: Tracer.AnySpan): Array<Header> => {
  const { traceId, spanId, sampled } = span
  const state = stateOf(span)
  return [
    ...headers.filter(({ key }) => key !== traceparent && key !== tracestate),
    {
      key: traceparent,
      value: bytes.encode(`00-${traceId.padStart(32, "0")}-${spanId}-${sampled ? "01" : "00"}`)
    },
    ...(state === undefined ? [] : [{ key: tracestate, value: bytes.encode(state) }])
  ]
}
