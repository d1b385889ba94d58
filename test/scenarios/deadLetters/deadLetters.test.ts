import { assert, describe } from "@effect/vitest"
import { Binding, type BindingOptions, BrokerError, RetryPolicy, TopicName } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import {
  advance,
  append,
  bytes,
  headersOf,
  incompressible,
  inTime,
  now,
  orders,
  publish,
  scenario,
  settle,
  start,
  until,
  valuesOf
} from "../bus.ts"

const failing = (settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = {}) =>
  Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.none,
    ...settings,
    handler: ({ value }) => (value.startsWith("good") ? Effect.void : Effect.die(new RangeError("no")))
  })

describe("the dead letter copy", () => {
  scenario("DLT-03..09 key, value and user headers are untouched; every header of the connector occurs once", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { firstOffset: 9_007_199_254_740_993n })
      const userHeaders = [
        { key: "a", value: bytes("1") },
        { key: "a", value: bytes("2") },
        { key: "x-eventbus-total-attempts", value: bytes("1000") },
        { key: "x-eventbus-original-topic", value: bytes("forged") },
        { key: "traceparent", value: bytes("00-t") }
      ]
      yield* memory.append("orders", 0, [{ key: bytes("k"), value: bytes("bad"), timestamp: 42, headers: userHeaders }])
      yield* advance("1 hour")
      yield* start(failing())
      const [letter] = yield* memory.log("orders.DLT", 0)
      assert.deepStrictEqual([letter?.key, letter?.value], [bytes("k"), bytes("bad")])
      const keys = letter!.headers.map(({ key }) => key)
      assert.deepStrictEqual(keys.slice(0, 3), ["a", "a", "traceparent"])
      const ours = keys.filter((key) => key.startsWith("x-eventbus-"))
      assert.strictEqual(new Set(ours).size, ours.length)
      const headers = headersOf(letter)
      const expected = {
        "x-eventbus-original-topic": "orders",
        "x-eventbus-original-partition": "0",
        "x-eventbus-original-offset": "9007199254740993",
        "x-eventbus-original-timestamp": "42",
        "x-eventbus-dlt-reason": "RETRIES_EXHAUSTED",
        "x-eventbus-dlt-timestamp": "3600000",
        "x-eventbus-total-attempts": "1",
        "x-eventbus-first-failure-timestamp": "3600000",
        "x-eventbus-retry-tier": "0",
        "x-eventbus-last-exception-class": "RangeError",
        "x-eventbus-last-exception-message": "no",
        "x-eventbus-tier0-exception": "RangeError",
        "x-eventbus-tier0-exhausted-at": "3600000"
      }
      for (const [name, value] of Object.entries(expected)) assert.strictEqual(headers.get(name), value, name)
      assert.include(headers.get("x-eventbus-last-exception-stacktrace") ?? "", "RangeError: no")
      assert.strictEqual(letter?.timestamp, 3_600_000)
    })
  )

  scenario("DLT-10 message and stack trace are cut in bytes, on a character boundary", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["x"])
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.none,
          handler: () => Effect.die(new Error("€".repeat(5000)))
        })
      )
      const [letter] = yield* memory.log("orders.DLT", 0)
      const size = (name: string) => letter!.headers.find(({ key }) => key === name)?.value?.length
      assert.strictEqual(size("x-eventbus-last-exception-message"), 1023)
      assert.isAtMost(size("x-eventbus-last-exception-stacktrace") ?? 0, 2048)
      assert.match(headersOf(letter).get("x-eventbus-last-exception-message") ?? "", /^€+$/)
    })
  )

  scenario("DLT-10 a copy too large with its headers loses forensic headers and keeps its value", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT", { config: new Map([["max.message.bytes", "2000"]]) })
      const value = "v".repeat(900)
      yield* append("orders", 0, [value])
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.none,
          handler: () => Effect.die(new Error("m".repeat(5000)))
        })
      )
      yield* advance("1 second")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), [value])
      const [letter] = yield* memory.log("orders.DLT", 0)
      assert.isFalse(headersOf(letter).has("x-eventbus-last-exception-stacktrace"))
      assert.strictEqual(headersOf(letter).get("x-eventbus-original-offset"), "0")
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
    })
  )

  scenario("DLT-10 DLT-02 a value that is too large by itself waits, unfinished, until the topic takes it", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* memory.createTopic("orders.DLT", { config: new Map([["max.message.bytes", "1000"]]) })
      yield* memory.append("orders", 0, [{ key: null, value: incompressible(5_000) }])
      yield* append("orders", 1, ["good"])
      const app = yield* start(failing())
      yield* advance("1 minute")
      assert.notStrictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      assert.strictEqual(yield* memory.committed("billing", "orders", 1), 1n)
      assert.isTrue(app.of("PublishFailed").every(({ error }) => error._tag === "RecordTooLarge"))
      yield* Effect.scoped(
        Effect.flatMap(memory.broker.admin, (open) =>
          open.alterTopicConfig("orders.DLT", new Map([["max.message.bytes", "1000000"]]))
        )
      )
      yield* advance("10 seconds")
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
    })
  )

  scenario("DLT-11 hostile header names and null values never prevent the publish of a copy", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const names = ["constructor", "__proto__", "toString", "", "hasOwnProperty", "x-eventbus-dlt-reason"]
      yield* memory.append("orders", 0, [{ value: bytes("bad"), headers: names.map((key) => ({ key, value: null })) }])
      yield* start(failing())
      const [letter] = yield* memory.log("orders.DLT", 0)
      const keys = letter!.headers.map(({ key }) => key)
      assert.deepStrictEqual(keys.slice(0, 5), names.slice(0, 5))
      assert.strictEqual(headersOf(letter).get("x-eventbus-dlt-reason"), "RETRIES_EXHAUSTED")
    })
  )
})

describe("publishing dead letters", () => {
  scenario("DLT-02 DLT-12 a missing topic is created like its source; keyless records keep their partition", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 4 })
      yield* memory.append("orders", 3, [{ key: null, value: bytes("bad") }])
      const app = yield* start(failing())
      yield* advance("1 second")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT", 3), ["bad"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 3), 1n)
      assert.strictEqual(app.of("Settled").length, 1)
    })
  )

  scenario("DLT-02 missingTopics wait: creating the topic heals it without a restart, with one copy", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["bad", "good"])
      const app = yield* start(failing({ missingTopics: "wait" }))
      yield* advance("1 minute")
      assert.isAbove(app.of("PublishFailed").length, 2)
      yield* memory.createTopic("orders.DLT")
      yield* advance("10 seconds")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
    })
  )

  scenario("DLT-02 when the topic cannot be created at first, it is tried again", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const error = new BrokerError.RequestTimedOut({ operation: "admin", millis: 1 })
      yield* append("orders", 0, ["bad"])
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.blocking({ maxAttempts: 2, jitter: 0 }),
          handler: () => Effect.die("no")
        })
      )
      yield* memory.addFault(FaultPlan.nth(1, { operation: "admin" }, { _tag: "Refuse", error }))
      yield* advance("100 millis")
      yield* advance("1 second")
      yield* advance("10 seconds")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad"])
    })
  )

  scenario("DLT-02 without the ACL other partitions go on, and granting it heals the partition", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* memory.createTopic("orders.DLT")
      const error = new BrokerError.AuthorizationFailed({ resource: "topic", name: "orders.DLT", operation: "write" })
      for (let nth = 1; nth <= 3; nth++) {
        yield* memory.addFault(FaultPlan.nth(1, { operation: "produce" }, { _tag: "Refuse", error }))
      }
      yield* append("orders", 0, ["bad", "good"])
      yield* append("orders", 1, ["good", "good"])
      const app = yield* start(failing())
      assert.strictEqual(yield* memory.committed("billing", "orders", 1), 2n)
      assert.notStrictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      yield* until(() => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"), "1 second")
      yield* settle
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
    })
  )

  scenario("DLT-12 a narrower topic takes records of every partition, by key", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 3 })
      yield* memory.createTopic("orders.DLT")
      yield* publish("orders", ["a", "b", "c", "d", "e"], (index) => (index === 4 ? null : `key-${index}`))
      yield* start(failing())
      yield* settle
      assert.deepStrictEqual([...(yield* valuesOf("orders.DLT"))].sort(), ["a", "b", "c", "d", "e"])
    })
  )

  scenario("DLT-01 a publish whose answer is lost leaves one copy", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT")
      yield* memory.addFault(FaultPlan.nth(1, { operation: "produce" }, { _tag: "LoseResponse" }))
      yield* append("orders", 0, ["bad"])
      const app = yield* start(failing())
      yield* until(() => app.of("Committed").length === 1, "5 seconds")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad"])
    })
  )

  scenario(
    "DLT-02 LIF-12 ruling 83 a stop while the dead letter cannot be published ends within `shutdownTimeout` and leaves the record unfinished",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["bad"])
        const app = yield* start(failing({ missingTopics: "wait" }))
        yield* advance("1 minute")
        const before = yield* now
        yield* inTime(app.connector.stop("orders"), "500 millis")
        assert.isAtMost((yield* now) - before, 30_000)
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 0n)
      })
  )

  scenario("NAM-01 the naming strategy of the binding decides where dead letters go", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["bad"])
      yield* start(
        failing({ naming: { ...TopicName.standard, deadLetter: ({ topic, groupId }) => `${topic}.${groupId}.dead` } })
      )
      yield* settle
      assert.deepStrictEqual(yield* valuesOf("orders.billing.dead"), ["bad"])
    })
  )
})
