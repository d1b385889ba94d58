/** The parts of a binding: consumers and their settings, shared state, and errors by name. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, type BindingOptions, Broker, EventBusError, RetryPolicy, Serde, TopicName } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Duration, Effect, Schema } from "effect"
import { advance, append, bytes, orders, scenario, settle, start } from "../bus.ts"

/** The binding's clients are noted as they are made. */
const noting = Effect.gen(function* () {
  const { broker } = yield* MemoryBroker.MemoryBroker
  const consumers: Array<Broker.ConsumerOptions> = []
  const producers: Array<Broker.ProducerOptions | undefined> = []
  const service: Broker.Broker["Service"] = {
    ...broker,
    consumer: (options) =>
      Effect.andThen(
        Effect.sync(() => consumers.push(options)),
        broker.consumer(options)
      ),
    producer: (options) =>
      Effect.andThen(
        Effect.sync(() => producers.push(options)),
        broker.producer(options)
      )
  }
  return { service, consumers, producers }
})

const withTopic = (partitions: number) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, ({ createTopic }) => createTopic("orders", { partitions }))

describe("a binding (TST-06: single adapter)", () => {
  scenario(
    "BND-03 BND-01 a handler gets topic, partition, offset, timestamp, key, value and headers; success finishes the record",
    () =>
      Effect.gen(function* () {
        yield* withTopic(2)
        const memory = yield* MemoryBroker.MemoryBroker
        const header = { key: "h", value: bytes("1") }
        yield* memory.append("orders", 1, [{ key: bytes("k"), value: bytes("v"), headers: [header], timestamp: 42 }])
        const seen: Array<unknown> = []
        yield* start(
          Binding.make("orders", {
            ...orders,
            key: Serde.string,
            handler: ({ key, value, headers, record: { topic, partition, offset, timestamp } }) =>
              Effect.sync(() => seen.push({ key, value, first: headers[0], topic, partition, offset, timestamp }))
          })
        )
        yield* settle
        const place = { topic: "orders", partition: 1, offset: 0n, timestamp: 42 }
        assert.deepStrictEqual(seen, [{ key: "k", value: "v", first: header, ...place }])
        assert.strictEqual(yield* memory.committed("billing", "orders", 1), 1n)
      })
  )

  scenario("TST-06 BND-07 BND-08 one call makes consumers for main topic and tiers, with the binding's settings", () =>
    Effect.gen(function* () {
      yield* withTopic(2)
      const { service, consumers } = yield* noting
      const settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = {
        retry: RetryPolicy.tiered({ tiers: ["1 minute", "5 minutes"], consumer: "separate" }),
        staticMembership: true,
        concurrency: 2,
        sessionTimeout: "30 seconds",
        heartbeatInterval: "9 seconds"
      }
      const binding = Binding.make("orders", { ...orders, ...settings, handler: () => Effect.void })
      const { connector } = yield* Effect.provideService(start(binding), Broker.Broker, service)
      assert.deepStrictEqual(
        consumers.map(({ groupId, topics }) => `${groupId}: ${topics}`),
        ["billing: orders", "billing: orders", "billing.retry: orders.retry-1,orders.retry-2"]
      )
      for (const { isolationLevel: isolation, sessionTimeout, heartbeatInterval } of consumers) {
        assert.deepStrictEqual([isolation, sessionTimeout, heartbeatInterval], ["read_committed", 30_000, 9_000])
      }
      const instances = consumers.map(({ groupInstanceId }) => groupInstanceId)
      assert.strictEqual(new Set(instances).size, 3)
      assert.match(instances[2] ?? "", /^orders__.+__2$/)
      assert.strictEqual((yield* connector.snapshot("orders")).containers.length, 3)
    })
  )

  scenario("BND-14 consumers and tiers share one breaker and one publisher; each consumer has its own offsets", () =>
    Effect.gen(function* () {
      yield* withTopic(2)
      const { service, producers } = yield* noting
      for (const partition of [0, 1]) yield* append("orders", partition, ["a", "b"])
      const { connector, of } = yield* Effect.provideService(
        start(
          Binding.make("orders", {
            ...orders,
            concurrency: 2,
            naming: TopicName.perGroup,
            retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 second"] }),
            circuitBreaker: { minimumNumberOfCalls: 10, slidingWindowSize: 10 },
            handler: () => Effect.die("no")
          })
        ),
        Broker.Broker,
        service
      )
      yield* advance("10 seconds")
      const { breaker, partitions, consumers } = yield* connector.snapshot("orders")
      assert.strictEqual(producers.length, 1)
      assert.strictEqual(consumers.length, 2)
      // Ten failures of two consumers, in the main topic and in the tier, opened the one breaker.
      assert.strictEqual(breaker?.state, "OPEN")
      assert.strictEqual(of("BreakerChanged").length, 1)
      const failed = of("AttemptFailed")
      assert.strictEqual(failed.length, 10)
      assert.strictEqual(new Set(failed.map(({ topic }) => topic)).size, 2)
      const main = partitions.filter(({ tier }) => tier === 0)
      assert.deepStrictEqual(
        main.map(({ consumer, committed }) => ({ consumer, committed })).sort((a, b) => a.consumer - b.consumer),
        [
          { consumer: 0, committed: 2n },
          { consumer: 1, committed: 2n }
        ]
      )
    })
  )

  scenario("NFR-08 a thousand idle partitions do no work for an hour", () =>
    Effect.gen(function* () {
      yield* withTopic(1_000)
      let calls = 0
      const { connector } = yield* start(
        Binding.make("orders", { ...orders, handler: () => Effect.sync(() => calls++) })
      )
      yield* advance("1 hour")
      assert.strictEqual(calls, 0)
      assert.strictEqual((yield* connector.snapshot("orders")).partitions.length, 1_000)
      yield* append("orders", 999, ["a"])
      yield* settle
      assert.strictEqual(calls, 1)
    })
  )

  it("BND-17 each error of the connector has a tag, says what to do, and survives serialization", () => {
    const errors = [
      new EventBusError.InvalidContainerState({
        ...{ binding: "orders", operation: "resume", current: "STOPPED", required: ["PAUSED"] }
      }),
      new EventBusError.BindingAlreadyExists({ binding: "orders" }),
      new EventBusError.BindingNotFound({ binding: "orders", known: ["payments"] }),
      new EventBusError.AmbiguousBinding({ binding: "orders", keys: ["default:orders", "west:orders"] }),
      new EventBusError.UnknownCluster({ cluster: "wset", known: ["west"] }),
      new EventBusError.ConfigurationValidation({ binding: "orders", issues: [] })
    ]
    for (const error of errors) {
      assert.instanceOf(error, Error)
      assert.strictEqual(error.constructor.name, error._tag)
      assert.match(error.message, /orders|cluster/)
      const schema = error.constructor as unknown as Schema.Codec<unknown, unknown>
      const sent = JSON.parse(JSON.stringify(Schema.encodeUnknownSync(schema)(error)))
      assert.deepInclude(Schema.decodeUnknownSync(schema)(sent), { _tag: error._tag, message: error.message })
    }
    const batch = EventBusError.BatchProcessing.from(2, new Error("no"))
    assert.deepStrictEqual([batch._tag, batch.failedIndex], ["BatchProcessing", 2])
  })

  it("BND-08 consumer limits have the defaults of connector seed §4.1", () => {
    const { definition } = Binding.make("orders", { ...orders, handler: () => Effect.void })
    const { maxPollRecords, maxPollIntervalMillis, sessionTimeoutMillis, heartbeatIntervalMillis, ackMode } = definition
    assert.deepStrictEqual(
      { maxPollRecords, maxPollIntervalMillis, sessionTimeoutMillis, heartbeatIntervalMillis, ackMode },
      {
        maxPollRecords: 50,
        maxPollIntervalMillis: Duration.toMillis("10 minutes"),
        sessionTimeoutMillis: 45_000,
        heartbeatIntervalMillis: 10_000,
        ackMode: "MANUAL_IMMEDIATE"
      }
    )
  })
})
