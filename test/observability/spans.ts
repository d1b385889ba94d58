/** A tracer that keeps its spans, for tests. */
import { Effect, Option, Tracer } from "effect"

/** Runs the effect with a tracer of its own; `spans` are those that began, in order. */
export const traced = Effect.fnUntraced(function* <A, E, R>(
  effect: (spans: ReadonlyArray<Tracer.Span>) => Effect.Effect<A, E, R>
) {
  const spans: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = Tracer.nativeTracer.span(options)
      spans.push(span)
      return span
    }
  })
  return yield* Effect.provideService(effect(spans), Tracer.Tracer, tracer)
})

export const parentIdOf = (span: Tracer.Span | undefined): string | undefined =>
  span === undefined ? undefined : Option.getOrUndefined(span.parent)?.spanId
