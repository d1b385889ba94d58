/**
 * Spans of a program's tracer that throws, as one with an exporter of its own may. A record whose span cannot be made, or ended, is handled as any other: its span is lost, and
 * the log says so.
 */
import * as Context from "effect/Context"
import * as Fiber from "effect/Fiber"
import * as Tracer from "effect/Tracer"
import { attend, isObject } from "../base/attend.ts"
import * as Failures from "./failure.ts"
import { failureText } from "./failureText.ts"
import * as FunctionLog from "./functionLog.ts"

type SpanOptions = Parameters<Tracer.Tracer["span"]>[0]

/** Makes a span. One that the tracer cannot make is a span that nobody exports. */
export const make = (tracer: Tracer.Tracer, options: SpanOptions): Tracer.Span => {
  if (tracer === Tracer.nativeTracer) return tracer.span(options)
  try {
    const span: Tracer.Span = tracer.span(options)
    attended(span)
    // The span of the copies, and of what the handler sends.
    const isNamed = typeof span.traceId === "string" && typeof span.spanId === "string"
    if (!isNamed || typeof span.sampled !== "boolean") throw new TypeError("a span without traceId, spanId or sampled")
    return quiet(span)
  } catch (error) {
    report(error)
    return Tracer.nativeTracer.span(options)
  }
}

/** A tracer may answer with one span for all that it leaves out: a wrapper around each wrapper would make every record slower than the one before. */
const isQuiet = new WeakSet<Tracer.Span>()

/** The span itself, since a tracer knows its own: its methods do not throw any more. */
const quiet = (span: Tracer.Span): Tracer.Span => {
  if (isQuiet.has(span)) return span
  const { end, attribute, event, addLinks } = span
  Object.assign(span, {
    end: caught(end.bind(span)),
    attribute: caught(attribute.bind(span)),
    event: caught(event.bind(span)),
    addLinks: caught(addLinks.bind(span))
  })
  isQuiet.add(span)
  return span
}

const caught =
  <Arguments extends ReadonlyArray<unknown>>(call: (...given: Arguments) => unknown) =>
  (...given: Arguments): void => {
    try {
      attended(call(...given))
    } catch (error) {
      report(error)
    }
  }

/** An async method is one, too: its rejection would end the process. */
const attended = (returned: unknown): void => {
  if (!isObject(returned)) return
  // The fiber has ended when the rejection comes.
  const context = contextNow()
  attend(returned, (error) => report(error, context))
}

const contextNow = (): Context.Context<never> => Fiber.getCurrent()?.context ?? Context.empty()

const report = (error: unknown, context = contextNow()): void =>
  FunctionLog.log(context, "the tracer", `the tracer failed: ${failureText(Failures.fromUnknown(error))}`)
