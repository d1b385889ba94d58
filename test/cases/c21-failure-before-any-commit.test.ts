import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, orders, scenario, start, until, valuesOf } from "../scenarios/bus.ts"

class Boom extends Schema.TaggedError<Boom>()("Boom", {}) {}

const values = Array.from({ length: 10 }, (_, index) => `v${index}`)

const binding = (handled: Array<string>, crash: () => boolean) =>
  Binding.make("orders", {
    ...orders,
    shutdownTimeout: 0,
    retry: RetryPolicy.blocking({ maxAttempts: 3, jitter: 0 }),
    handler: ({ value }) => {
      if (value === "v0") return crash() ? Effect.never : Effect.fail(new Boom())
      return Effect.sync(() => handled.push(value))
    },
    onError: { Boom: Route.retry }
  })

describe("C21 a failure before any commit exists", () => {
  scenario("OFF-10 a crash on the very first record, then a restart: all ten are handled or dead-lettered", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values)
      const handled: Array<string> = []
      let crashing = true
      yield* start(binding(handled, () => crashing))
      const [member] = (yield* memory.group("billing")).members
      yield* memory.kill(member!.clientId)
      crashing = false
      yield* start(binding(handled, () => crashing))
      yield* until(() => handled.length === 9, "5 seconds")
      assert.deepStrictEqual(handled, values.slice(1))
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["v0"])
    })
  )

  scenario(
    "OFF-10 the committed offset is out of range: the lost range is reported, reading resumes at the earliest",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, values)
        yield* memory.setCommitted("billing", "orders", 0, 1n)
        yield* Effect.scoped(
          Effect.flatMap(memory.broker.admin, (admin) => admin.deleteRecords("orders", [{ partition: 0, before: 4n }]))
        )
        const handled: Array<string> = []
        const app = yield* start(binding(handled, () => false))
        yield* advance("1 second")
        assert.deepStrictEqual(handled, values.slice(4))
        assert.deepStrictEqual(
          app.of("RecordsGone").map(({ from, to, gone }) => [from, to, gone]),
          [[1n, 4n, 3n]]
        )
      })
  )
})
