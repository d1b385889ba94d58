/** A tracer of the program's that throws, as one with a processor or an exporter of its own may. */
import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Tracer } from "effect"
import { advance, append, orders, scenario, start, valuesOf } from "../bus.ts"
import { withoutUnhandled } from "../hostileAnswers.ts"

const broken = (): never => {
  throw new Error("the exporter is away")
}

/** Spans of a tracer, with a method that throws. */
const spansWith = (change: object) =>
  Tracer.make({ span: (options) => Object.assign(Object.create(Tracer.nativeTracer.span(options)), change) })

const tracers = {
  span: Tracer.make({ span: broken }),
  "end of a span": spansWith({ end: broken }),
  "attribute of a span": spansWith({ attribute: broken }),
  "event of a span": spansWith({ event: broken })
}

describe("OBS-15 ruling 86 a program's tracer that throws", () => {
  for (const [name, tracer] of Object.entries(tracers)) {
    scenario(`${name}: each record is handled once, and none is dead-lettered; the log tells of the tracer`, () =>
      withoutUnhandled((lines) =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          yield* memory.createTopic("orders.DLT")
          yield* append("orders", 0, ["a", "b"])
          const handled: Array<string> = []
          const handler = ({ value }: { readonly value: string }) =>
            Effect.withSpan(
              Effect.andThen(
                Effect.annotateCurrentSpan("order", value),
                Effect.sync(() => handled.push(value))
              ),
              "charge"
            )
          const settings = { ...orders, retry: RetryPolicy.none }
          yield* start(Binding.make("orders", { ...settings, handler })).pipe(
            Effect.provideService(Tracer.Tracer, tracer)
          )
          for (let second = 0; second < 10; second++) yield* advance("1 second")
          assert.deepStrictEqual(handled, ["a", "b"])
          assert.deepStrictEqual(yield* valuesOf("orders.DLT"), [])
          const told = lines.filter((line) => line.includes("the tracer failed: Error: the exporter is away"))
          assert.lengthOf(told, name === "event of a span" ? 0 : 1)
        })
      )
    )
  }
})
