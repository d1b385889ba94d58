import { assert, describe, it } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, layer, start, text } from "../bus.ts"

class Boom extends Schema.TaggedError<Boom>()("Boom", {}) {}

describe("a first binding", () => {
  it.effect("handles every record in order and commits after the last", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* append("orders", 0, ["a0", "a1", "a2"])
      yield* append("orders", 1, ["b0", "b1"])
      const handled: Array<string> = []
      const app = yield* start(
        Binding.make("orders", {
          topic: "orders",
          groupId: "billing",
          value: Serde.string,
          handler: ({ value }) => Effect.sync(() => handled.push(value))
        })
      )
      assert.deepStrictEqual(
        handled.filter((v) => v.startsWith("a")),
        ["a0", "a1", "a2"]
      )
      assert.deepStrictEqual(
        handled.filter((v) => v.startsWith("b")),
        ["b0", "b1"]
      )
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
      assert.strictEqual(yield* memory.committed("billing", "orders", 1), 2n)
      yield* app.close
      assert.strictEqual((yield* memory.usage).consumers, 0)
    }).pipe(Effect.provide(layer()))
  )

  it.effect("retries in place, then dead-letters the original bytes", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["ok", "bad", "{"])
      const seen: Array<string> = []
      yield* start(
        Binding.make("orders", {
          topic: "orders",
          groupId: "billing",
          value: Serde.string,
          retry: RetryPolicy.blocking({ jitter: 0 }),
          handler: ({ value }) => {
            seen.push(value)
            return value === "bad" ? Effect.fail(new Boom()) : Effect.void
          },
          onError: { Boom: Route.retry }
        })
      )
      assert.deepStrictEqual(seen, ["ok", "bad"])
      yield* advance("300 millis")
      assert.deepStrictEqual(seen, ["ok", "bad", "bad", "bad", "{"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
      const dead = yield* memory.log("orders.DLT", 0)
      assert.deepStrictEqual(
        dead.map((record) => text(record.value)),
        ["bad"]
      )
      assert.deepStrictEqual(
        dead[0]?.headers.filter((header) => header.key.endsWith("total-attempts")).map((header) => text(header.value)),
        ["3"]
      )
    }).pipe(Effect.provide(layer()))
  )
})
