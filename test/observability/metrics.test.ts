import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect, Metric } from "effect"
import { advance, append, inTime, orders, settle, start } from "../scenarios/bus.ts"
import { histogramOf, labelsOf, metered, namesOf, valueOf } from "./series.ts"

class Down extends Data.TaggedError("Down") {}
class Invalid extends Data.TaggedError("Invalid") {}

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `v${index}`)

const createTopic = Effect.fnUntraced(function* (topic: string, partitions = 1) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic(topic, { partitions })
})

/** Fails with `Down` as long as it says so, and with `Invalid` for values that begin with it. */
const binding = (options: { readonly isDown: () => boolean }) =>
  Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 3, initialBackoff: "1 second", multiplier: 1, jitter: 0 },
      tiers: ["1 minute", "5 minutes"]
    }),
    onError: { Down: Route.retry, Invalid: Route.deadLetter("invalid") },
    handler: ({ value }) =>
      Effect.gen(function* () {
        yield* Effect.sleep("20 millis")
        if (value.startsWith("invalid")) return yield* new Invalid()
        if (value.startsWith("down") && options.isDown()) return yield* new Down()
      })
  })

const main = { cluster: "default", binding: "orders", topic: "orders" } as const

describe("the metrics of a binding", () => {
  metered("OBS-01 OBS-05 OBS-17 each success counts once, by partition, with its duration", () =>
    Effect.gen(function* () {
      yield* createTopic("orders", 2)
      yield* append("orders", 0, numbered(3))
      yield* append("orders", 1, numbered(2))
      yield* start(binding({ isDown: () => false }))
      yield* advance("1 second")
      assert.strictEqual(yield* valueOf("eventbus.records.processed", { ...main, partition: "0" }), 3)
      assert.strictEqual(yield* valueOf("eventbus.records.processed", { ...main, partition: "1" }), 2)
      const duration = yield* histogramOf("eventbus.processing.duration", { binding: "orders", listenerType: "SINGLE" })
      assert.deepStrictEqual(duration, { count: 5, sum: 0.1 })
      assert.deepStrictEqual(yield* histogramOf("messaging.process.duration"), duration)
      const consumed = yield* labelsOf("messaging.client.consumed.messages", {
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "1"
      })
      assert.deepStrictEqual(consumed, [
        {
          "messaging.system": "kafka",
          "messaging.consumer.group.name": "billing",
          "eventbus.cluster": "default",
          "eventbus.binding": "orders",
          "messaging.operation.name": "process",
          "messaging.destination.name": "orders",
          "messaging.destination.partition.id": "1"
        }
      ])
      assert.strictEqual(yield* valueOf("kafka.consumer.records.consumed", { group: "billing" }), 5)
      assert.deepStrictEqual(yield* histogramOf("eventbus.batch.size", { binding: "orders" }), { count: 2, sum: 5 })
    })
  )

  metered(
    "OBS-02 OBS-03 OBS-04 OBS-17 ruling 75 failed deliveries, routes and dead letters, by error, tier and reason",
    () =>
      Effect.gen(function* () {
        yield* createTopic("orders")
        yield* append("orders", 0, ["v0", "invalid", "down"])
        yield* start(binding({ isDown: () => true }))
        assert.strictEqual(yield* valueOf("eventbus.records.dlq", { ...main, reason: "NON_RETRYABLE" }), 0)
        yield* advance("30 minutes")
        assert.strictEqual(yield* valueOf("eventbus.records.failed", { ...main, exception: "Invalid" }), 1)
        // Three attempts in the main topic are one failed delivery; three deliveries in either tier are three.
        assert.strictEqual(yield* valueOf("eventbus.records.failed", { ...main, exception: "Down" }), 1)
        for (const topic of ["orders.retry-1", "orders.retry-2"]) {
          assert.strictEqual(
            yield* valueOf("eventbus.records.failed", { binding: "orders", topic, exception: "Down" }),
            3
          )
        }
        assert.strictEqual(yield* valueOf("eventbus.records.dlq", { ...main, reason: "NON_RETRYABLE" }), 1)
        assert.strictEqual(yield* valueOf("eventbus.records.routed", { ...main, tier: "1" }), 1)
        const exhausted = { binding: "orders", topic: "orders.retry-2", reason: "RETRIES_EXHAUSTED" }
        assert.strictEqual(yield* valueOf("eventbus.records.dlq", exhausted), 1)
        // Handled at once, dead-lettered at once, and two retries in place; then three deliveries in either tier, with two retries each.
        const ofTier = (tier: string) => histogramOf("eventbus.retry.count", { binding: "orders", tier })
        assert.deepStrictEqual(yield* ofTier("0"), { count: 3, sum: 2 })
        assert.deepStrictEqual(yield* ofTier("1"), { count: 3, sum: 6 })
        assert.deepStrictEqual(yield* ofTier("2"), { count: 3, sum: 6 })
        assert.strictEqual(yield* valueOf("eventbus.records.processed", { ...main, partition: "0" }), 1)
        const sent = { "messaging.destination.name": "orders.DLT" }
        assert.strictEqual(yield* valueOf("messaging.client.sent.messages", sent), 2)
      })
  )

  metered("OBS-02 error classes beyond the limit share one label", () =>
    Effect.gen(function* () {
      yield* createTopic("orders")
      yield* append("orders", 0, numbered(60))
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.none,
          handler: ({ value }) => Effect.die(Object.assign(new Error("unforeseen"), { name: `Error of ${value}` }))
        })
      )
      yield* settle
      const exceptions = (yield* labelsOf("eventbus.records.failed")).map((labels) => labels["exception"])
      assert.strictEqual(exceptions.length, 51)
      assert.strictEqual(yield* valueOf("eventbus.records.failed", { exception: "other" }), 10)
    })
  )

  metered("OBS-07 OBS-09 OBS-13 gauges show the states of breaker and binding, and each change is counted", () =>
    Effect.gen(function* () {
      yield* createTopic("orders")
      yield* append("orders", 0, numbered(5))
      let isDown = true
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.none,
          circuitBreaker: {
            slidingWindowSize: 3,
            minimumNumberOfCalls: 3,
            permittedNumberOfCallsInHalfOpenState: 1,
            waitDurationInOpenState: "30 seconds"
          },
          onError: { Down: Route.retry },
          handler: () => Effect.suspend(() => (isDown ? Effect.fail(new Down()) : Effect.void))
        })
      )
      const circuit = valueOf("eventbus.circuit.state", { binding: "orders" })
      const state = valueOf("eventbus.container.state", { binding: "orders" })
      assert.deepStrictEqual([yield* circuit, yield* state], [1, 2])
      assert.strictEqual(yield* valueOf("eventbus.circuit.transitions", { to: "OPEN" }), 1)
      isDown = false
      yield* advance("30 seconds")
      assert.deepStrictEqual([yield* circuit, yield* state], [0, 1])
      assert.strictEqual(yield* valueOf("eventbus.circuit.transitions", { to: "CLOSED" }), 1)
      yield* app.connector.pause("orders")
      assert.strictEqual(yield* state, 2)
      yield* app.connector.stop("orders")
      assert.strictEqual(yield* state, 3)
    })
  )

  metered("OBS-12 the safety valve counts each time that it acts", () =>
    Effect.gen(function* () {
      yield* createTopic("orders")
      yield* append("orders", 0, ["slow", "quick"])
      yield* start(
        Binding.make("orders", {
          ...orders,
          maxPollInterval: "10 seconds",
          retry: RetryPolicy.none,
          handler: ({ value }) => (value === "slow" ? Effect.never : Effect.void)
        })
      )
      assert.strictEqual(yield* valueOf("eventbus.poll.interval.safety.triggered"), 0)
      yield* advance("7 seconds")
      assert.strictEqual(yield* valueOf("eventbus.poll.interval.safety.triggered", { binding: "orders" }), 1)
      assert.deepStrictEqual(yield* histogramOf("eventbus.processing.duration"), { count: 2, sum: 7 })
    })
  )

  metered("OBS-06 OBS-05 a batch counts as one call and one size", () =>
    Effect.gen(function* () {
      yield* createTopic("orders")
      yield* append("orders", 0, numbered(7))
      yield* start(
        Binding.makeBatch("orders", {
          ...orders,
          value: Serde.string,
          maxPollRecords: 5,
          handleBatch: () => Effect.sleep("1 second")
        })
      )
      yield* advance("5 seconds")
      assert.deepStrictEqual(yield* histogramOf("eventbus.batch.size", { binding: "orders" }), { count: 2, sum: 7 })
      const duration = yield* histogramOf("eventbus.processing.duration", { listenerType: "BATCH" })
      assert.deepStrictEqual(duration, { count: 2, sum: 2 })
      assert.strictEqual(yield* valueOf("eventbus.records.processed", { partition: "0" }), 7)
    })
  )

  metered("OBS-08 lag counts unfinished records; a record that holds its partition shows its age", () =>
    Effect.gen(function* () {
      yield* createTopic("orders")
      yield* append("orders", 0, numbered(10))
      let holds = true
      yield* start(
        Binding.make("orders", {
          ...orders,
          handler: ({ value }) =>
            Effect.suspend(() => (holds && value === "v4" ? Effect.sleep("50 seconds") : Effect.void))
        })
      )
      const at = { binding: "orders", topic: "orders", partition: "0" }
      assert.strictEqual(yield* valueOf("eventbus.consumer.lag", at), 6)
      assert.strictEqual(yield* valueOf("kafka.consumer.lag", { group: "billing", partition: "0" }), 6)
      assert.strictEqual(yield* valueOf("kafka.consumer.records.lag.max", { group: "billing" }), 6)
      assert.strictEqual(yield* valueOf("eventbus.partition.stalled", at), 0)
      yield* advance("40 seconds")
      assert.strictEqual(yield* valueOf("eventbus.oldest.record.age", at), 40)
      assert.strictEqual(yield* valueOf("eventbus.partition.stalled", at), 40)
      holds = false
      yield* advance("10 seconds")
      assert.strictEqual(yield* valueOf("eventbus.consumer.lag", at), 0)
      assert.strictEqual(yield* valueOf("eventbus.partition.stalled", at), 0)
      assert.strictEqual(yield* valueOf("eventbus.oldest.record.age", at), 0)
    })
  )

  metered("OBS-08 lag stays right while the binding is paused, and when a transactional topic is read to its end", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders")
      yield* append("orders", 0, numbered(2))
      const app = yield* start(binding({ isDown: () => false }))
      const lag = valueOf("eventbus.consumer.lag", { topic: "orders", partition: "0" })
      yield* advance("1 second")
      assert.strictEqual(yield* lag, 0)
      yield* app.connector.pause("orders")
      yield* append("orders", 0, numbered(7))
      yield* advance("30 seconds")
      assert.strictEqual(yield* lag, 7)
      yield* app.connector.resume("orders")
      yield* advance("5 seconds")
      assert.strictEqual(yield* lag, 0)
      // Behind the record is the marker of its transaction, which no consumer sees.
      const producer = yield* memory.broker.transactionalProducer({ transactionalId: "t" })
      yield* producer.transaction((transaction) => transaction.send({ topic: "orders", key: null, value: null }))
      yield* advance("30 seconds")
      assert.strictEqual(yield* lag, 0)
    })
  )

  metered(
    "OBS-10 ruling 75 depth counts dead letters stored before and after the start, until a replay takes them",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* createTopic("orders")
        yield* createTopic("orders.DLT")
        yield* append("orders.DLT", 0, numbered(4))
        yield* start(binding({ isDown: () => false }))
        const depth = valueOf("eventbus.dlt.depth", { binding: "orders" })
        const known = Effect.map(labelsOf("eventbus.dlt.depth"), (all) => all.length > 0)
        assert.isFalse(yield* known, "nobody has counted yet")
        yield* advance("10 seconds")
        assert.strictEqual(yield* depth, 4)
        yield* append("orders", 0, ["invalid"])
        yield* advance("1 second")
        assert.strictEqual(yield* depth, 5)
        yield* memory.broker.admin.pipe(
          Effect.flatMap((admin) =>
            admin.setCommittedOffsets("billing.dlt", [{ topic: "orders.DLT", partition: 0, offset: 3n }])
          )
        )
        yield* advance("20 seconds")
        assert.strictEqual(yield* depth, 2)
      })
  )

  metered(
    "OBS-10 ruling 75 the cluster is asked for the depth only while somebody reads; the gauge shows no old answer",
    () =>
      Effect.gen(function* () {
        yield* createTopic("orders")
        yield* createTopic("orders.DLT")
        yield* start(binding({ isDown: () => false }))
        const depth = valueOf("eventbus.dlt.depth")
        const known = Effect.map(labelsOf("eventbus.dlt.depth"), (all) => all.length > 0)
        assert.isFalse(yield* known)
        yield* advance("10 seconds")
        assert.strictEqual(yield* depth, 0)
        yield* advance("5 minutes")
        yield* append("orders.DLT", 0, numbered(4))
        yield* advance("5 minutes")
        assert.isFalse(yield* known, "nobody has asked for minutes")
        yield* advance("10 seconds")
        assert.strictEqual(yield* depth, 4)
      })
  )

  metered("OBS-11 during an outage the depth of a tier shows how many records wait in it", () =>
    Effect.gen(function* () {
      yield* createTopic("orders")
      yield* append("orders", 0, ["down-1", "down-2", "down-3"])
      let isDown = true
      yield* start(binding({ isDown: () => isDown }))
      const depth = (tier: string) => valueOf("eventbus.retry.tier.depth", { binding: "orders", tier })
      yield* advance("30 seconds")
      assert.deepStrictEqual([yield* depth("1"), yield* depth("2")], [3, 0])
      yield* advance("5 minutes")
      assert.deepStrictEqual([yield* depth("1"), yield* depth("2")], [0, 3])
      isDown = false
      yield* advance("10 minutes")
      assert.deepStrictEqual([yield* depth("1"), yield* depth("2")], [0, 0])
    })
  )

  metered("LIF-16 ruling 36 a binding that is registered, fails and is destroyed leaves no series", () =>
    Effect.gen(function* () {
      yield* createTopic("orders")
      const app = yield* start()
      for (let round = 0; round < 5; round++) {
        yield* app.connector.register(binding({ isDown: () => false }))
        yield* append("orders", 0, ["v", "invalid"])
        yield* advance("5 seconds")
        assert.isNotEmpty(yield* namesOf("orders"))
        yield* inTime(app.connector.destroy("orders"))
      }
      assert.strictEqual((yield* Metric.MetricRegistry).size, 0)
    })
  )

  metered("LIF-16 ruling 36 a series ends with its partition, run or binding", () =>
    Effect.gen(function* () {
      yield* createTopic("orders", 2)
      const first = yield* start(binding({ isDown: () => false }))
      const lags = Effect.map(labelsOf("eventbus.consumer.lag", { topic: "orders" }), (all) => all.length)
      assert.strictEqual(yield* lags, 2)
      // Another process joins the group and takes one of the two.
      const second = yield* Effect.provideService(
        start(binding({ isDown: () => false })),
        Metric.MetricRegistry,
        new Map()
      )
      yield* advance("1 minute")
      assert.strictEqual(yield* lags, 1)
      yield* second.close
      yield* first.connector.stop("orders")
      assert.deepStrictEqual(yield* namesOf("orders"), ["eventbus.container.state"])
      yield* first.connector.start("orders")
      yield* advance("1 minute")
      assert.strictEqual(yield* lags, 2)
      yield* first.connector.destroy("orders")
      assert.deepStrictEqual(yield* namesOf("orders"), [])
    })
  )
})
