import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, TopicName } from "@eventbus/core"
import { Effect } from "effect"
import { orders, scenario, start } from "../bus.ts"

const bind = (name: string, topic: string, groupId: string, naming = TopicName.standard) =>
  Binding.make(name, {
    ...orders,
    topic,
    groupId,
    naming,
    retry: RetryPolicy.tiered(),
    autoStartup: false,
    handler: () => Effect.void
  })

describe("topics that two bindings would share", () => {
  for (const [first, second, topic] of [
    [bind("a", "orders", "g"), bind("b", "orders.retry-2", "g"), "orders.retry-2"],
    [bind("a", "orders.DLT", "g"), bind("b", "orders", "h"), "orders.DLT"],
    [bind("a", "orders", "g"), bind("b", "orders_retry-1", "h"), "orders_retry-1"],
    [bind("a", "orders_DLT", "g"), bind("b", "orders", "h"), "orders.DLT"],
    [bind("a", "a.b", "g"), bind("b", "a.b", "h"), "a.b.retry-1"],
    // Kafka would share the records out between the two.
    [bind("a", "orders", "g"), bind("b", "orders", "g"), "orders"],
    [bind("a", "a", "b", TopicName.perGroup), bind("b", "a.b", "h"), "a.b.retry-1"],
    [bind("a", "a", "b_c", TopicName.perGroup), bind("b", "a_b", "c", TopicName.perGroup), "a_b.c.retry-1"]
  ] as const) {
    scenario(`NAM-08 NAM-09 ruling 1 '${topic}' is refused, and both bindings are named`, () =>
      Effect.gen(function* () {
        const { connector } = yield* start(first)
        const refusal = yield* Effect.flip(connector.register(second))
        assert.strictEqual(refusal._tag, "ConfigurationValidation")
        assert.include(refusal.message, `'${topic}'`)
        assert.include(refusal.message, "binding 'a'")
      })
    )
  }

  for (const [title, names, path] of [
    ["a dead letter topic that is the source", { deadLetter: () => "orders" }, "deadLetterTopic"],
    ["a dead letter topic too much like the source", { deadLetter: () => "orders_x" }, "deadLetterTopic"],
    ["a dead letter topic that is a tier", { deadLetter: () => "orders.x.retry-2" }, "retry.tiers"],
    ["a dead letter topic that is no text", { deadLetter: () => undefined as unknown as string }, "naming.deadLetter"],
    ["tiers of one name", { retry: () => "same" }, "retry.tiers"],
    ["a tier that is the source", { retry: () => "orders.x" }, "retry.tiers"],
    ["a tier of no legal name", { retry: () => "a/b" }, "retry.tiers"],
    ["a tier that is no text", { retry: () => undefined as unknown as string }, "naming.retry"]
  ] as const) {
    scenario(`NAM-04 NAM-08 ruling 1 a custom strategy that gives ${title} is refused, with and without tiers`, () =>
      Effect.gen(function* () {
        const { connector } = yield* start()
        const source = "deadLetter" in names && names.deadLetter() === "orders" ? "orders" : "orders.x"
        const naming = { ...TopicName.standard, ...names, name: "mine" }
        const retries = ["retry.tiers", "naming.retry"].includes(path)
          ? [RetryPolicy.tiered()]
          : [RetryPolicy.tiered(), RetryPolicy.none]
        for (const retry of retries) {
          const binding = Binding.make("a", { ...orders, topic: source, naming, retry, handler: () => Effect.void })
          const refusal = yield* Effect.flip(connector.register(binding))
          assert.strictEqual(refusal._tag, "ConfigurationValidation")
          assert.include(refusal.message, path)
        }
      })
    )
  }

  scenario("NAM-09 NAM-10 distinct names are accepted, whatever they are", () =>
    Effect.gen(function* () {
      yield* start(
        bind("a", "orders", "g", TopicName.perGroup),
        bind("b", "orders", "h", TopicName.perGroup),
        bind("__proto__", "__proto__", "constructor"),
        bind("constructor", "toString", "__proto__")
      )
    })
  )
})
