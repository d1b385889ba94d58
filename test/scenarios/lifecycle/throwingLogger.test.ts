/** A logger of the program's that throws for a while, as one does whose disk is full. */
import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger } from "effect"
import { advance, append, orders, scenario, start } from "../bus.ts"
import { lateOnes, withoutUnhandled } from "../hostileAnswers.ts"

describe("ruling 86: a logger that throws", () => {
  scenario(
    "loses its lines, and nothing else: records take their way, and the log of health goes on afterwards",
    () => {
      const lines: Array<string> = []
      let isFull = false
      const logger = Logger.make(({ message }) => {
        if (isFull) throw new Error("ENOSPC: no space left on device, write")
        lines.push(String(message))
      })
      return Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const settings = { ...orders, retry: RetryPolicy.none, missingTopics: "wait" as const }
        const binding = Binding.make("orders", {
          ...settings,
          onError: () => Route.deadLetter(),
          handler: ({ value }) => (value === "bad" ? Effect.fail("declined") : Effect.void)
        })
        const app = yield* start(binding)
        const admin = yield* memory.broker.admin
        isFull = true
        // Health gets a reason and loses it, while no line can be written.
        yield* append("orders", 0, ["bad", "good"])
        for (let second = 0; second < 70; second++) yield* advance("1 second")
        yield* memory.createTopic("orders.DLT")
        for (let second = 0; second < 70; second++) yield* advance("1 second")
        assert.deepStrictEqual(
          app.of("Settled").map(({ settlement }) => settlement),
          ["DeadLettered", "Handled"]
        )
        isFull = false
        const before = lines.length
        yield* admin.deleteTopics(["orders.DLT"])
        yield* append("orders", 0, ["bad"])
        for (let second = 0; second < 150; second++) yield* advance("1 second")
        yield* memory.createTopic("orders.DLT")
        for (let second = 0; second < 70; second++) yield* advance("1 second")
        assert.isTrue(
          lines.slice(before).some((line) => line.includes("after")),
          lines.slice(before).join("\n")
        )
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
        assert.strictEqual((yield* app.connector.health).status, "UP")
      }).pipe(Effect.provide(Logger.layer([logger])))
    }
  )

  scenario("an async one that is rejected loses its lines, and the process goes on; another logger has them", () => {
    const lines: Array<string> = []
    const full = Promise.reject.bind(Promise, new Error("ENOSPC: no space left on device, write"))
    const loggers = [Logger.make(full), Logger.make(fullNow), Logger.make(({ message }) => lines.push(String(message)))]
    return withoutUnhandled(() =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["bad", "good"])
        const handler = ({ value }: { readonly value: string }) =>
          value === "bad" ? Effect.fail("declined" as never) : Effect.void
        const app = yield* start(Binding.make("orders", { ...orders, retry: RetryPolicy.none, handler }))
        yield* advance("5 seconds")
        yield* lateOnes
        assert.isNotEmpty(lines)
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
      }).pipe(Effect.provide(Logger.layer(loggers)))
    )
  })
})

const fullNow = (): never => {
  throw new Error("ENOSPC: no space left on device, write")
}
