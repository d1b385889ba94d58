/**
 * Spans of a program's tracer that throws, as one with an exporter of its own may. A record whose span cannot be made, or ended, is handled as any other: its span is lost, and
 * the log says so.
 */
import { Context, Fiber, Tracer } from "effect"
import * as Failures from "./failure.ts"
import { failureText } from "./failureText.ts"
import * as FunctionLog from "./functionLog.ts"

type SpanOptions = Parameters<Tracer.Tracer["span"]>[0]

/** Makes a span. One that the tracer cannot make is a span that nobody exports. */
export const make = (tracer: Tracer.Tracer, options: SpanOptions): Tracer.Span => {
  if (tracer === Tracer.nativeTracer) return tracer.span(options)
  try {
    return quiet(tracer.span(options))
  } catch (error) {
    report(error)
    return Tracer.nativeTracer.span(options)
  }
}

/** The span itself, since a tracer knows its own: its methods do not throw any more. */
const quiet = (span: Tracer.Span): Tracer.Span => {
  const { end, attribute, event, addLinks } = span
  return Object.assign(span, {
    end: caught(end.bind(span)),
    attribute: caught(attribute.bind(span)),
    event: caught(event.bind(span)),
    addLinks: caught(addLinks.bind(span))
  })
}

const caught =
  <Arguments extends ReadonlyArray<unknown>>(call: (...given: Arguments) => void) =>
  (...given: Arguments): void => {
    try {
      call(...given)
    } catch (error) {
      report(error)
    }
  }

const report = (error: unknown): void => {
  const context = Fiber.getCurrent()?.context ?? Context.empty()
  FunctionLog.log(context, "the tracer", `the tracer failed: ${failureText(Failures.fromUnknown(error))}`)
}
