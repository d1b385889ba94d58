/** A binding that reads several topics: one handler, group, circuit breaker and limit, and derived topics for each. */
import { assert } from "@effect/vitest"
import { Binding, Broker, CurrentTransaction, IdempotencyStore, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, append, bytes, headersOf, scenario, start, text, until, valuesOf } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}

const settings = {
  topic: ["orders", "payments"],
  groupId: "billing",
  value: Serde.string
} as const

const createTopics = (partitions = 1) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    for (const topic of settings.topic) yield* memory.createTopic(topic, { partitions })
    return memory
  })

/** The offsets that the group has committed, such as `orders-0@3`. */
const committed = (topics: ReadonlyArray<string> = settings.topic) =>
  Effect.gen(function* () {
    const admin = yield* (yield* Broker.Broker).admin
    const found = yield* admin.committedOffsets("billing", topics)
    return found.map(({ topic, partition, offset }) => `${topic}-${partition}@${offset}`).sort()
  }).pipe(Effect.scoped)

scenario(
  "RCH-11 one handler gets the records of all topics, in the order of each partition, and each is committed",
  () =>
    Effect.gen(function* () {
      yield* createTopics(2)
      const seen = new Map<string, Array<string>>()
      const binding = Binding.make("billing", {
        ...settings,
        handler: ({ record, value }) =>
          Effect.sync(() => {
            const at = `${record.topic}-${record.partition}`
            seen.set(at, [...(seen.get(at) ?? []), value])
          })
      })
      const app = yield* start(binding)
      for (const topic of settings.topic)
        for (const partition of [0, 1]) yield* append(topic, partition, ["1", "2", "3"])
      yield* until(() => Array.from(seen.values()).flat().length === 12, "100 millis")
      assert.deepStrictEqual(
        Array.from(seen).sort(),
        ["orders-0", "orders-1", "payments-0", "payments-1"].map((at) => [at, ["1", "2", "3"]])
      )
      yield* advance("1 second")
      assert.deepStrictEqual(yield* committed(), ["orders-0@3", "orders-1@3", "payments-0@3", "payments-1@3"])
      const { topic, topics, partitions, containers } = yield* app.connector.snapshot("billing")
      assert.deepStrictEqual([topic, topics], ["orders", ["orders", "payments"]])
      assert.deepStrictEqual(
        partitions.filter(({ tier }) => tier === 0).map((each) => `${each.topic}-${each.partition} lag ${each.lag}`),
        ["orders-0 lag 0", "orders-1 lag 0", "payments-0 lag 0", "payments-1 lag 0"]
      )
      assert.deepStrictEqual(containers[1]?.topics, ["orders.retry-1", "payments.retry-1"])
      assert.deepStrictEqual(
        (yield* app.connector.getByTopic("payments.retry-2")).map(({ name }) => name),
        ["billing"]
      )
    })
)

const failing = (retry: RetryPolicy.RetryPolicy, calls: Array<string>) =>
  Binding.make("billing", {
    ...settings,
    retry,
    onError: { Down: Route.retry },
    handler: ({ record, tier, idempotencyKey }) =>
      Effect.suspend(() => {
        calls.push(`${record.topic} ${tier} ${idempotencyKey.split("@")[0]}`)
        return Effect.fail(new Down())
      })
  })

const once = (tiers: ReadonlyArray<RetryPolicy.TierOptions>) =>
  RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers })

scenario(
  "RCH-11 a record goes through the retry topics of its own topic into its dead letter topic, with its origin",
  () =>
    Effect.gen(function* () {
      const memory = yield* createTopics()
      const calls: Array<string> = []
      const app = yield* start(failing(once([{ delay: "1 second", maxAttempts: 1 }]), calls))
      yield* append("payments", 0, ["p"])
      yield* append("orders", 0, ["o"])
      yield* until(
        () => app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered").length === 2,
        "1 second"
      )
      assert.deepStrictEqual(calls.toSorted(), [
        "orders 0 default:orders-0-0",
        "orders.retry-1 1 default:orders-0-0",
        "payments 0 default:payments-0-0",
        "payments.retry-1 1 default:payments-0-0"
      ])
      for (const [topic, value] of [
        ["orders", "o"],
        ["payments", "p"]
      ] as const) {
        const [letter, ...others] = yield* memory.log(`${topic}.DLT`, 0)
        assert.deepStrictEqual([text(letter?.value), others.length], [value, 0])
        assert.strictEqual(headersOf(letter).get("x-eventbus-original-topic"), topic)
      }
    })
)

scenario("RCH-11 with retry topics in a group of their own, all topics and all retry topics are read", () =>
  Effect.gen(function* () {
    yield* createTopics()
    const calls: Array<string> = []
    const retry = RetryPolicy.tiered({
      ...{ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 second", maxAttempts: 1 }] },
      consumer: "separate"
    })
    const app = yield* start(failing(retry, calls))
    for (const topic of settings.topic) yield* append(topic, 0, [topic])
    yield* until(
      () => app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered").length === 2,
      "1 second"
    )
    assert.deepStrictEqual([yield* valuesOf("orders.DLT"), yield* valuesOf("payments.DLT")], [["orders"], ["payments"]])
  })
)

scenario("RCH-11 maxInFlight and the concurrency of a tier are limits over all topics", () =>
  Effect.gen(function* () {
    yield* createTopics(2)
    let [running, most] = [0, 0]
    const binding = Binding.make("billing", {
      ...settings,
      maxInFlight: 2,
      retry: once([{ delay: "1 second", maxAttempts: 1, concurrency: 1 }]),
      onError: { Down: Route.retry },
      handler: ({ tier }) =>
        Effect.gen(function* () {
          most = Math.max(most, ++running)
          yield* Effect.sleep("1 second")
          running--
          if (tier === 0) return yield* new Down()
        })
    })
    const app = yield* start(binding)
    for (const topic of settings.topic) for (const partition of [0, 1]) yield* append(topic, partition, ["1"])
    const settled = (settlement: string) => app.of("Settled").filter((event) => event.settlement === settlement).length
    yield* until(() => settled("Routed") === 4, "250 millis")
    assert.strictEqual(most, 2)
    most = 0
    yield* until(() => settled("Handled") === 4, "250 millis")
    assert.strictEqual(most, 1)
  })
)

scenario("RCH-11 the failures of one topic open the one breaker, and the records of all topics wait for it", () =>
  Effect.gen(function* () {
    yield* createTopics()
    let isDown = true
    const handled: Array<string> = []
    const binding = Binding.make("billing", {
      ...settings,
      retry: RetryPolicy.blocking({ maxAttempts: 1 }),
      circuitBreaker: { slidingWindowSize: 2, minimumNumberOfCalls: 2, waitDurationInOpenState: "10 seconds" },
      onError: { Down: Route.retry },
      handler: ({ record }) =>
        Effect.suspend(() => {
          if (isDown) return Effect.fail(new Down())
          handled.push(record.topic)
          return Effect.void
        })
    })
    const app = yield* start(binding)
    yield* append("orders", 0, ["1", "2", "3"])
    yield* until(() => app.of("BreakerChanged").some(({ to }) => to === "OPEN"), "100 millis")
    isDown = false
    yield* append("payments", 0, ["1"])
    yield* advance("2 seconds")
    assert.deepStrictEqual(handled, [])
    yield* until(() => handled.includes("payments") && handled.includes("orders"), "1 second")
  })
)

scenario(
  "RCH-11 a topic of the list that is missing is named, the others are read, and it is read once it is there",
  () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const handled: Array<string> = []
      const binding = Binding.make("billing", {
        ...settings,
        handler: ({ record }) => Effect.sync(() => void handled.push(record.topic))
      })
      const app = yield* start(binding)
      yield* append("orders", 0, ["1"])
      yield* until(() => handled.length === 1, "1 second")
      assert.deepStrictEqual(
        app.of("TopicUnavailable").map(({ topic, error }) => [topic, error._tag]),
        [["payments", "UnknownTopic"]]
      )
      yield* advance("10 seconds")
      const { reasons } = yield* app.connector.health
      assert.deepStrictEqual(
        reasons.map((reason) => [reason._tag, "topic" in reason ? reason.topic : undefined]),
        [["TopicUnreadable", "payments"]]
      )
      yield* memory.createTopic("payments")
      yield* append("payments", 0, ["1"])
      yield* until(() => handled.length === 2, "10 seconds")
      yield* advance("20 seconds")
      assert.deepStrictEqual((yield* app.connector.health).reasons, [])
      const admin = yield* memory.broker.admin
      yield* admin.deleteTopics(["payments"])
      yield* advance("30 seconds")
      const again = (yield* app.connector.health).reasons.find(({ _tag }) => _tag === "TopicUnreadable")
      assert.strictEqual(again?._tag === "TopicUnreadable" ? again.topic : undefined, "payments")
    })
)

scenario("RCH-11 a tier that is paused by itself waits in every topic, and goes on in every topic", () =>
  Effect.gen(function* () {
    yield* createTopics()
    const calls: Array<string> = []
    const app = yield* start(failing(once([{ delay: "1 second", maxAttempts: 1 }]), calls))
    yield* app.connector.pause("billing", { tier: 1 })
    for (const topic of settings.topic) yield* append(topic, 0, ["1"])
    yield* advance("10 seconds")
    assert.deepStrictEqual(
      calls.filter((call) => call.includes("retry")),
      []
    )
    yield* app.connector.resume("billing", { tier: 1 })
    yield* until(() => calls.filter((call) => call.includes("retry")).length === 2, "1 second")
  })
)

scenario("RCH-11 a batch is of one topic, and says which, also in a retry topic", () =>
  Effect.gen(function* () {
    yield* createTopics()
    const batches: Array<string> = []
    const binding = Binding.makeBatch("billing", {
      ...settings,
      retry: once([{ delay: "1 second", maxAttempts: 1 }]),
      handleBatch: ({ topic, deliveries }) =>
        Effect.suspend(() => {
          batches.push(`${topic}: ${deliveries.map(({ record }) => record.topic).join()}`)
          return deliveries.every(({ tier }) => tier === 0) ? Effect.fail(new Down()) : Effect.void
        }),
      onError: { Down: Route.retry }
    })
    const app = yield* start(binding)
    for (const topic of settings.topic) yield* append(topic, 0, ["1"])
    yield* until(() => app.of("Settled").filter(({ settlement }) => settlement === "Handled").length === 2, "1 second")
    assert.deepStrictEqual(Array.from(new Set(batches)).sort(), [
      "orders: orders",
      "orders: orders.retry-1",
      "payments: payments",
      "payments: payments.retry-1"
    ])
  })
)

scenario("RCH-11 a transactional binding commits the offsets of each topic with what its handler publishes", () =>
  Effect.gen(function* () {
    const memory = yield* createTopics()
    yield* memory.createTopic("ledger")
    const binding = Binding.makeTransactional("billing", {
      ...settings,
      handler: ({ record, value }) =>
        Effect.asVoid(
          Effect.orDie(
            CurrentTransaction.send({ topic: "ledger", key: null, value: bytes(`${record.topic} ${value}`) })
          )
        )
    })
    const app = yield* start(binding)
    for (const topic of settings.topic) yield* append(topic, 0, ["1"])
    yield* until(() => app.of("Settled").length === 2, "1 second")
    yield* advance("1 second")
    assert.deepStrictEqual(yield* committed(), ["orders-0@1", "payments-0@1"])
    assert.deepStrictEqual((yield* valuesOf("ledger")).toSorted(), ["orders 1", "payments 1"])
  })
)

scenario("RCH-11 the same key of an idempotent handler on two topics is other work, on one topic it is the same", () =>
  Effect.gen(function* () {
    yield* createTopics()
    const handled: Array<string> = []
    const binding = Binding.make("billing", {
      ...settings,
      retry: RetryPolicy.blocking(),
      idempotency: { key: ({ value }) => value },
      handler: ({ record, value }) => Effect.sync(() => void handled.push(`${record.topic} ${value}`))
    })
    const app = yield* start(binding)
    for (const topic of settings.topic) yield* append(topic, 0, ["17", "17"])
    yield* until(() => app.of("Settled").length === 4, "1 second")
    assert.deepStrictEqual(handled.toSorted(), ["orders 17", "payments 17"])
  }).pipe(Effect.provide(IdempotencyStore.layerMemory()))
)
