/** The log line of a binding's start names the topics that the binding reads and makes. */
import { assert } from "@effect/vitest"
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger } from "effect"
import * as Bus from "../bus.ts"

const orders = { topic: "orders", groupId: "billing", value: Serde.string, handler: () => Effect.void }

/** The log lines of a binding's state changes. */
const stateLines = Effect.fnUntraced(function* (
  binding: Binding.Binding<never>,
  commands: ReadonlyArray<"pause" | "resume" | "stop" | "start"> = []
) {
  const lines: Array<string> = []
  const capture = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
  const app = yield* Effect.provide(Bus.start(binding), capture)
  for (const command of commands) yield* app.connector[command](binding.name)
  yield* app.close
  return lines.filter((line) => line.includes("Binding is RUNNING"))
})

Bus.scenario(
  "RCH-14 the line of the start names the three retry topics of a binding without `retry`, and the topics are there",
  () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      assert.deepStrictEqual(yield* stateLines(Binding.make("orders", orders)), [
        "Binding is RUNNING, was CREATED. It reads 'orders', retries over 'orders.retry-1' (10s), 'orders.retry-2' (1m), 'orders.retry-3' (5m) and sends dead letters to 'orders.DLT'; missing retry and dead letter topics are created"
      ])
      for (const n of [1, 2, 3]) assert.strictEqual((yield* memory.log(`orders.retry-${n}`, 0)).length, 0)
    })
)

Bus.scenario("without retry topics the line says so; a resume does not name topics, a start after a stop does", () =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* memory.createTopic("orders")
    const binding = Binding.make("orders", { ...orders, retry: RetryPolicy.blocking(), missingTopics: "wait" })
    const topics =
      "It reads 'orders', has no retry topics and sends dead letters to 'orders.DLT'; records wait for missing topics"
    assert.deepStrictEqual(yield* stateLines(binding, ["pause", "resume", "stop", "start"]), [
      `Binding is RUNNING, was CREATED. ${topics}`,
      "Binding is RUNNING, was PAUSED",
      `Binding is RUNNING, was STOPPED. ${topics}`
    ])
  })
)
