/** A list of topics in files and variables. */
import { assert, describe, it } from "@effect/vitest"
import { Configuration } from "@eventbus/config"
import { Effect } from "effect"
import { issuesOf } from "../issues.ts"

const orders = (topic: string, more = "", env: Configuration.Environment = {}) =>
  Configuration.parse(`eventbus: { bindings: { orders: { topic: ${topic}, groupId: billing${more} } } }`, { env })

const topicOf = (...given: Parameters<typeof orders>) =>
  Effect.map(orders(...given), ({ bindings }) => bindings[0]?.topic)

describe("RCH-11 a list of topics in a file", () => {
  it.effect("RCH-11 is one topic or a list, in YAML, in JSON, and in a variable with commas", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* topicOf("orders"), "orders")
      assert.deepStrictEqual(yield* topicOf("[orders, payments]"), ["orders", "payments"])
      assert.deepStrictEqual(yield* topicOf('"${TOPICS}"', "", { TOPICS: "orders, payments" }), ["orders", "payments"])
      assert.strictEqual(yield* topicOf('"${TOPICS}"', "", { TOPICS: "orders" }), "orders")
      const named = { EVENTBUS_BINDINGS_ORDERS_TOPIC: "refunds,payments" }
      assert.deepStrictEqual(yield* topicOf("orders", "", named), ["refunds", "payments"])
      assert.strictEqual(yield* topicOf("orders", "", { EVENTBUS_BINDINGS_ORDERS_TOPIC: "refunds" }), "refunds")
      const second = { EVENTBUS_BINDINGS_ORDERS_TOPIC_1: "refunds" }
      assert.deepStrictEqual(yield* topicOf("[orders, payments]", "", second), ["orders", "refunds"])
      const [binding] = Configuration.withoutHandlers(yield* orders("[orders, payments]"))
      assert.deepStrictEqual(
        binding?.definition.otherSources.map(({ deadLetterTopic }) => deadLetterTopic),
        ["payments.DLT"]
      )
    })
  )

  it.effect("RCH-11 names each mistake by path, found and allowed values", () =>
    Effect.gen(function* () {
      const told = (...given: Parameters<typeof orders>) => issuesOf(orders(...given))
      const at = "eventbus.bindings.orders"
      const aName = "a topic name: 1 to 249 characters out of a-z A-Z 0-9 . _ -"
      const aList = `${aName}; or a list, each entry ${aName}`
      assert.deepStrictEqual(yield* told("[]"), [`${at}.topic: an empty list; ${aList}`])
      assert.deepStrictEqual(yield* told('[orders, "pay ments"]'), [`${at}.topic[1]: "pay ments"; ${aName}`])
      assert.deepStrictEqual(yield* told("[orders, payments, orders]"), [
        `${at}.topic[2]: 'orders'; each topic once: topic[0] is the same`
      ])
      assert.deepStrictEqual(yield* told("[orders, orders.DLT]"), [
        `${at}.topic[1]: 'orders.DLT'; a topic of records: topic 'orders' of the list derives 'orders.DLT'`
      ])
      assert.deepStrictEqual(yield* told("[orders, payments]", ", deadLetter: { topic: dead }"), [
        `${at}.deadLetter.topic: 'dead'; names that differ from topic to topic: 'orders' and 'payments' would share this one (naming strategy standard)`
      ])
    })
  )
})
