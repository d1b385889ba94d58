/** A tracer of the program's that throws, as one with a processor or an exporter of its own may. */
import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Context, Effect, Option, Tracer } from "effect"
import { advance, append, orders, scenario, start, valuesOf } from "../bus.ts"
import { lateOnes, withoutUnhandled } from "../hostileAnswers.ts"

const broken = (): never => {
  throw new Error("the exporter is away")
}

/** Spans of a tracer, with a method that throws. */
const spansWith = (change: object) =>
  Tracer.make({ span: (options) => Object.assign(Object.create(Tracer.nativeTracer.span(options)), change) })

const tracers = {
  span: Tracer.make({ span: broken }),
  "an async span": Tracer.make({ span: (async () => broken()) as () => never }),
  "an async end of a span": spansWith({ end: async () => broken() }),
  "an end of a span that answers with a thenable": spansWith({
    end: () => ({
      // biome-ignore lint/suspicious/noThenProperty: a Promise of another library has one, too.
      then: (_: unknown, rejected: (error: unknown) => void) => rejected(new Error("the exporter is away"))
    })
  }),
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
          yield* lateOnes
          const told = lines.filter((line) => line.includes("the tracer failed: Error: the exporter is away"))
          assert.lengthOf(told, name === "event of a span" || name === "an async span" ? 0 : 1)
        })
      )
    )
  }

  scenario("a tracer with one span for all: its methods are wrapped once", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a"])
      const one = Tracer.nativeTracer.span({
        ...{ name: "left out", parent: Option.none(), annotations: Context.empty(), links: [] },
        ...{ startTime: 0n, kind: "internal", root: true, sampled: true }
      })
      const spans = Tracer.make({ span: () => one })
      yield* start(Binding.make("orders", { ...orders, handler: () => Effect.void })).pipe(
        Effect.provideService(Tracer.Tracer, spans)
      )
      yield* advance("1 second")
      const { end } = one
      yield* append("orders", 0, ["b", "c"])
      yield* advance("1 second")
      assert.strictEqual(one.end, end)
    })
  )

  const nameless: Readonly<Record<string, object>> = {
    "no traceId": { traceId: undefined },
    "a number as spanId": { spanId: 7 },
    "no sampled": { sampled: undefined }
  }
  for (const [name, change] of Object.entries(nameless)) {
    scenario(`a span with ${name}: a record that fails is dead-lettered, and the one behind it is handled`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["bad", "good"])
        const handled: Array<string> = []
        const handler = ({ value }: { readonly value: string }) =>
          value === "bad" ? Effect.fail("declined" as never) : Effect.sync(() => handled.push(value))
        const spans = Tracer.make({
          span: (options) => Object.defineProperties(Tracer.nativeTracer.span(options), propertiesOf(change))
        })
        const app = yield* start(Binding.make("orders", { ...orders, retry: RetryPolicy.none, handler })).pipe(
          Effect.provideService(Tracer.Tracer, spans)
        )
        for (let second = 0; second < 10; second++) yield* advance("1 second")
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad"])
        assert.deepStrictEqual(handled, ["good"])
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
      })
    )
  }
})

const propertiesOf = (change: object): PropertyDescriptorMap =>
  Object.fromEntries(Object.entries(change).map(([name, value]) => [name, { value }]))
