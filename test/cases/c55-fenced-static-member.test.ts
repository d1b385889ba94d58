import { assert, describe } from "@effect/vitest"
import { Binding } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, start } from "../scenarios/bus.ts"

describe("C55 fenced static member wakes up", () => {
  scenario(
    "ruling 81 the fenced member stops for good and says so in log, state and health; the other keeps the name, and nothing is lost",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const seen: Record<string, Array<string>> = { old: [], new: [] }
        const member = (by: "old" | "new") =>
          start(
            Binding.make("orders", {
              ...orders,
              staticMembership: true,
              handler: ({ value }) => Effect.sync(() => void seen[by]!.push(value))
            })
          )
        const old = yield* member("old")
        yield* append("orders", 0, ["a"])
        yield* advance("1 second")
        const next = yield* member("new")
        for (let minute = 0; minute < 30; minute++) {
          yield* append("orders", 0, [String(minute)])
          yield* advance("1 minute")
        }
        assert.deepStrictEqual(seen["old"], ["a"])
        assert.deepStrictEqual(
          seen["new"],
          Array.from({ length: 30 }, (_, minute) => String(minute))
        )
        assert.deepStrictEqual([old.of("ConsumerFenced").length, next.of("ConsumerFenced").length], [1, 0])
        assert.deepStrictEqual([...old.of("SessionCrashed"), ...next.of("SessionCrashed")], [])
        const [consumer] = (yield* old.connector.snapshot("orders")).consumers
        assert.deepInclude(consumer, { status: "fenced" })
        const health = yield* old.connector.health
        assert.deepInclude(health, { status: "DOWN", ready: false, live: true })
        assert.deepInclude(health.reasons[0], { _tag: "ConsumerFenced", consumer: 0 })
        assert.strictEqual((yield* next.connector.health).status, "UP")
      })
  )

  scenario("ruling 81 an operator who starts the fenced binding again decides that it has the name", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const binding = Binding.make("orders", { ...orders, staticMembership: true, handler: () => Effect.void })
      const old = yield* start(binding)
      const next = yield* start(binding)
      yield* advance("1 minute")
      assert.lengthOf(old.of("ConsumerFenced"), 1)
      yield* old.connector.stop("orders")
      yield* old.connector.start("orders")
      yield* advance("1 minute")
      assert.lengthOf(next.of("ConsumerFenced"), 1)
      assert.deepInclude((yield* old.connector.snapshot("orders")).consumers[0], { status: "running" })
    })
  )
})
