import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Binding, type Broker, type ConsumerRecord, EventBusConnector, type Outcome, Serde } from "@eventbus/core"
import { DeadLetters, MemoryBroker, TestBus } from "@eventbus/testkit"
import { Effect, type Layer, Metric, Result, Schema } from "effect"
import { expectTypeOf } from "vitest"

const source = (path: string) => readFileSync(fileURLToPath(new URL(`../../packages/${path}`, import.meta.url)), "utf8")

describe("counterparts of the technology table (connector seed §12)", () => {
  it.each([
    ["the retry library", "Schedule", "core/src/internal/retry/backoff.ts"],
    ["the breaker library", "Ref", "core/src/CircuitBreaker.ts"],
    ["configuration classes", "Schema", "config/src/Settings.ts"],
    ["the metrics library", "Metric", "core/src/internal/observe/metricSeries.ts"],
    ["the application's lifecycle", "Scope", "core/src/internal/lifecycle/container.ts"]
  ])("CARD-13 of %s: %s of Effect", (_, name, path) => {
    expect(source(path)).toMatch(new RegExp(`import (?:type )?\\* as ${name} from "effect/${name}"`))
  })

  it("CARD-13 of records and sealed interfaces: immutable values, and unions that a switch matches exhaustively", () => {
    // Without a default this compiles only while every result has a case.
    const shown = (outcome: Outcome.Outcome): string => {
      switch (outcome._tag) {
        case "SuccessResult":
          return "done"
        case "RetryableResult":
          return "later"
        case "ErrorResult":
          return "never"
      }
    }
    expect(shown({ _tag: "SuccessResult" })).toBe("done")
    expectTypeOf<ConsumerRecord.ConsumerRecord>().toEqualTypeOf<Readonly<ConsumerRecord.ConsumerRecord>>()
  })

  it("CARD-13 of the error-catching deserializer: decoding returns a value, also when it fails", () => {
    expect(Result.isFailure(Serde.json(Schema.Struct({})).decode(Uint8Array.of(0xff)))).toBe(true)
  })

  it.effect("CARD-13 of the embedded broker, the health indicator and the metrics registry: services", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      yield* bus.publish("orders", { value: "o-1" })
      yield* bus.settled
      yield* DeadLetters.expectNone("orders")
      const connector = yield* EventBusConnector.EventBusConnector
      expect((yield* connector.health).status).toBe("UP")
      expect((yield* Metric.snapshot).map(({ id }) => id)).toContain("eventbus.records.processed")
      expectTypeOf(MemoryBroker.layer()).toExtend<Layer.Layer<Broker.Broker>>()
    }).pipe(Effect.provide(TestBus.layer([binding])))
  )
})

const binding = Binding.make("orders", {
  topic: "orders",
  groupId: "billing",
  value: Serde.string,
  handler: () => Effect.void
})
