/**
 * W3C Trace Context in the headers of a record: `traceparent` and `tracestate`. Headers are input: what is malformed is as good as absent.
 */
import { Context, Option, Tracer } from "effect"
import type { Header } from "../../ConsumerRecord.ts"
import * as HeaderValues from "./headerValues.ts"

export const traceparent = "traceparent"
export const tracestate = "tracestate"

/** What came with a trace beside its ids, on the span that continues it. */
const State = Context.Reference<string | undefined>("@eventbus/core/TraceState", { defaultValue: () => undefined })

/** Version, trace, span, flags. A later version may have more behind them, after a dash; version ff is none. */
const form = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const mostLength = 256
const mostState = 512

const ascii = new TextDecoder("latin1")
const bytes = new TextEncoder()

/** The span that a record belongs to; undefined when its headers name none. */
export const read = (headers: ReadonlyArray<Header>): Tracer.ExternalSpan | undefined => {
  const parent = HeaderValues.last(headers, traceparent)
  if (parent === undefined || parent === null || parent.length > mostLength) return undefined
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
      state === undefined || state === null || state.length > mostState
        ? Context.empty()
        : Context.make(State, ascii.decode(state))
  })
}

/** The nearest span that may be told of: the ones in between were made while tracing was off. */
const visible = (span: Tracer.AnySpan | undefined): Tracer.AnySpan | undefined => {
  let current = span
  while (current !== undefined && Context.get(current.annotations, Tracer.DisablePropagation)) {
    current = current._tag === "Span" ? Option.getOrUndefined(current.parent) : undefined
  }
  return current
}

/** The span that is current in a fiber's context. */
export const currentSpan = (context: Context.Context<never>): Tracer.AnySpan | undefined =>
  visible(Context.getOrUndefined(context, Tracer.ParentSpan))

/** The state that came with the trace of a span, from wherever it entered. */
const stateOf = (span: Tracer.AnySpan): string | undefined => {
  for (let at: Tracer.AnySpan | undefined = span; at !== undefined; ) {
    const state = Context.get(at.annotations, State)
    if (state !== undefined) return state
    at = at._tag === "Span" ? Option.getOrUndefined(at.parent) : undefined
  }
  return undefined
}

/** Headers that name the span, in place of what they named before. */
export const write = (headers: ReadonlyArray<Header>, span: Tracer.AnySpan): ReadonlyArray<Header> => {
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
