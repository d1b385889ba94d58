import { assert, describe, it } from "@effect/vitest"
import { Binding, Defaults, Plan, RetryPolicy, Serde } from "@eventbus/core"
import { Effect } from "effect"

const orders = { topic: "orders", groupId: "billing", value: Serde.string, handler: () => Effect.void }
const batch = { ...orders, handleBatch: () => Effect.void }

const retryTopics = (binding: Binding.Binding<unknown>) =>
  Plan.make(binding).topics.flatMap(({ topic, role, delayMillis, createIfMissing }) =>
    role === "retry" ? [[topic, delayMillis, createIfMissing]] : []
  )

const threeTiers = [
  ["orders.retry-1", 10_000, true],
  ["orders.retry-2", 60_000, true],
  ["orders.retry-3", 300_000, true]
]

describe("a binding in code without `retry`", () => {
  it("RCH-14 RTY-05 has the three tiers of connector seed §4.6, whatever its kind, and the plan names the topics that the connector makes", () => {
    for (const binding of [
      Binding.make("orders", orders),
      Binding.make("orders", { ...orders, listenerType: "BATCH" }),
      Binding.make("orders", { ...orders, orderingMode: "PER_KEY" }),
      Binding.makeBatch("orders", batch),
      Binding.makeTransactional("orders", orders)
    ]) {
      assert.deepStrictEqual(retryTopics(binding), threeTiers)
      const { deliveriesInAll, attempts } = Plan.make(binding).retries
      assert.deepStrictEqual([deliveriesInAll, attempts], [10, 30])
    }
    assert.deepStrictEqual(Binding.make("orders", orders).definition.retry, RetryPolicy.tiered())
  })

  it("CFG-19 has attempts in place only where the order is STRICT", () => {
    const strict = Binding.make("orders", { ...orders, orderingMode: "STRICT" })
    assert.deepStrictEqual(retryTopics(strict), [])
    assert.deepStrictEqual(strict.definition.retry, RetryPolicy.blocking())
    assert.strictEqual(Binding.problems([strict]).size, 0)
  })

  it("blocking() and none are the ways to have no retry topics", () => {
    const of = (retry: RetryPolicy.RetryPolicy) => Plan.make(Binding.make("orders", { ...orders, retry }))
    assert.deepStrictEqual(
      of(RetryPolicy.blocking()).topics.map(({ topic }) => topic),
      ["orders", "orders.DLT"]
    )
    assert.strictEqual(of(RetryPolicy.blocking()).retries.attempts, Defaults.retry.blocking.maxAttempts)
    assert.strictEqual(of(RetryPolicy.none).retries.attempts, 1)
    assert.deepStrictEqual(RetryPolicy.tiered({ tiers: [] }), RetryPolicy.blocking())
  })
})
