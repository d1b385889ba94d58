/** The parts of a binding: consumers and their settings, shared state, and errors by name. */
import { assert, describe, it } from "@effect/vitest"
import {
  Binding,
  type BindingOptions,
  Broker,
  BrokerError,
  EventBusError,
  RetryPolicy,
  Route,
  Serde,
  TopicName
} from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Duration, Effect, Schema } from "effect"
import { advance, append, bytes, inTime, orders, scenario, settle, start, text } from "../bus.ts"

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
      for (const partition of [0, 1]) yield* append("orders", partition, ["a", "b", "c", "d"])
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
      // The deliveries of one record count as one: those of the tier are not new to the breaker.
      yield* advance("1500 millis")
      for (const partition of [0, 1]) yield* append("orders", partition, ["e"])
      yield* advance("10 seconds")
      const { breaker, partitions, consumers } = yield* connector.snapshot("orders")
      assert.strictEqual(producers.length, 1)
      assert.strictEqual(consumers.length, 2)
      // Ten records that failed at two consumers, in the main topic and in the tier, opened the one breaker.
      assert.strictEqual(breaker?.state, "OPEN")
      assert.strictEqual(of("BreakerChanged").length, 1)
      const failed = of("AttemptFailed")
      assert.strictEqual(failed.length, 18)
      assert.strictEqual(new Set(failed.map(({ topic }) => topic)).size, 2)
      const main = partitions.filter(({ tier }) => tier === 0)
      assert.deepStrictEqual(main.map(({ consumer }) => consumer).sort(), [0, 1])
      assert.deepStrictEqual(main.map(({ committed }) => committed).sort(), [4n, 5n])
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

  it("BND-17 each error of the family has a tag, names its subject, and survives serialization", () => {
    const cause = new BrokerError.UnknownTopic({ topic: "orders.DLT" })
    // A class that the family has and this table lacks is a compile error.
    const family: { readonly [E in EventBusError.EventBusException as E["_tag"]]: E } = {
      InvalidContainerState: new EventBusError.InvalidContainerState({
        ...{ binding: "orders", operation: "resume", current: "STOPPED", required: ["PAUSED"] }
      }),
      BindingAlreadyExists: new EventBusError.BindingAlreadyExists({ binding: "orders" }),
      BindingNotFound: new EventBusError.BindingNotFound({ binding: "orders", known: ["payments"] }),
      AmbiguousBinding: new EventBusError.AmbiguousBinding({ binding: "orders", keys: ["default:orders", "w:orders"] }),
      UnknownCluster: new EventBusError.UnknownCluster({ cluster: "wset", known: ["west"] }),
      ConfigurationValidation: new EventBusError.ConfigurationValidation({
        ...{ binding: "orders", issues: [{ path: "concurrency", found: "0", allowed: "a whole number, 1 or more" }] }
      }),
      ConnectorClosed: new EventBusError.ConnectorClosed({ binding: "orders" }),
      ProcessingBudgetExceeded: new EventBusError.ProcessingBudgetExceeded({ budgetMillis: 420_000 }),
      BatchProcessing: EventBusError.BatchProcessing.from(2, new Error("no")),
      KeyBlocked: new EventBusError.KeyBlocked({
        ...{ binding: "orders", topic: "orders", partition: 3, offset: 7n, behind: 4n }
      }),
      DltPublish: new EventBusError.DltPublish({
        ...{
          binding: "orders",
          topic: "orders.DLT",
          sourceTopic: "orders",
          sourcePartition: 3,
          sourceOffset: 7n,
          cause
        }
      })
    }
    const subjects = /orders|cluster 'wset'|420000 ms|index 2/
    for (const [tag, error] of Object.entries(family)) {
      assert.instanceOf(error, Error)
      assert.deepStrictEqual([error._tag, error.constructor.name], [tag, tag])
      assert.match(error.message, subjects)
      const schema = error.constructor as unknown as Schema.Codec<unknown, unknown>
      const sent = JSON.parse(JSON.stringify(Schema.encodeUnknownSync(Schema.toCodecJson(schema))(error)))
      const received = Schema.decodeUnknownSync(Schema.toCodecJson(schema))(sent)
      assert.instanceOf(received, error.constructor as new () => unknown)
      assert.deepInclude(received, { _tag: tag, message: error.message })
    }
    for (const tag of [
      ...["InvalidContainerState", "BindingAlreadyExists", "BindingNotFound", "ConfigurationValidation"],
      ...["BatchProcessing", "DltPublish"]
    ]) {
      assert.property(family, tag)
    }
  })

  it("BND-17 BatchProcessing has the index of the first failed record, and finds the failed records of its batch", () => {
    const batch = [0n, 1n, 2n, 3n].map((offset) => ({
      ...{ topic: "orders", partition: 0, offset, timestamp: 0, key: null, value: null, headers: [] }
    }))
    const first = EventBusError.BatchProcessing.from(2, new Error("no"))
    assert.deepStrictEqual([first.failedIndex, first.failedRecords(batch)], [2, [batch[2]]])
    const some = EventBusError.BatchProcessing.these([
      { index: 3, error: "no" },
      { index: 1, error: "no" }
    ])
    assert.deepStrictEqual([some.failedIndex, some.failedRecords(batch)], [1, [batch[3], batch[1]]])
  })

  scenario(
    "BND-17 a refused dead letter is told as DltPublish with its record and cause; a refused retry copy is not",
    () =>
      Effect.gen(function* () {
        yield* withTopic(1)
        yield* append("orders", 0, ["retried", "dead"])
        const { of } = yield* start(
          Binding.make("orders", {
            ...orders,
            missingTopics: "wait",
            // Under `MANUAL_IMMEDIATE` the second record would wait for the copy of the first.
            ackMode: "MANUAL",
            retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 minute"] }),
            handler: ({ value }) => Effect.fail(value),
            onError: (value) => (value === "dead" ? Route.deadLetter() : Route.retry)
          })
        )
        yield* advance("1 second")
        const failed = of("PublishFailed")
        const [ofTier] = failed.filter(({ topic }) => topic === "orders.retry-1")
        const [ofDeadLetter] = failed.filter(({ topic }) => topic === "orders.DLT")
        assert.isDefined(ofTier)
        assert.isUndefined(ofTier?.deadLetter)
        const error = ofDeadLetter?.deadLetter
        assert.instanceOf(error, EventBusError.DltPublish)
        assert.deepInclude(
          { ...error },
          {
            ...{ _tag: "DltPublish", binding: "orders", topic: "orders.DLT" },
            ...{ sourceTopic: "orders", sourcePartition: 0, sourceOffset: 1n }
          }
        )
        assert.strictEqual(error?.cause, ofDeadLetter?.error)
        assert.include(error?.message, "binding 'orders', record orders-0@1, to 'orders.DLT': ")
      })
  )

  scenario("BND-08 each setting of a binding reaches its consumers; a dynamic member has no instance id", () =>
    Effect.gen(function* () {
      yield* withTopic(1)
      const { service, consumers } = yield* noting
      const plain = Binding.make("orders", { ...orders, handler: () => Effect.void })
      const set = Binding.make("other", {
        ...orders,
        ...{ topic: "other", groupId: "other", naming: TopicName.perGroup, isolationLevel: "read_uncommitted" },
        ...{ sessionTimeout: "30 seconds", heartbeatInterval: "9 seconds", rebalanceTimeout: "20 seconds" },
        ...{
          fetchMaxWait: "50 millis",
          maxPartitionFetchBytes: 1_000,
          maxBufferedBytes: 5_000,
          staticMembership: true,
          partitionAssignmentStrategy: ["range"]
        },
        handler: () => Effect.void
      })
      yield* Effect.provideService(start(plain, set), Broker.Broker, service)
      const { mayJoin, ...defaults } = consumers[0]!
      assert.isTrue(mayJoin?.())
      assert.deepStrictEqual(defaults, {
        ...{ groupId: "billing", topics: ["orders"], isolationLevel: "read_committed" },
        ...{ groupProtocol: "classic", partitionAssignmentStrategy: ["eventbus-cooperative-sticky"] },
        ...{ sessionTimeout: 45_000, heartbeatInterval: 10_000, rebalanceTimeout: 60_000 },
        ...{
          fetchMaxWait: 100,
          maxPartitionFetchBytes: 1_048_576,
          maxRecordBytes: 16_777_216,
          maxBytesByTopic: new Map()
        }
      })
      const { groupInstanceId, replacesGroupInstanceIds = [], mayJoin: _, ...options } = consumers[1]!
      assert.match(groupInstanceId ?? "", /^other__.+__0$/)
      assert.match(replacesGroupInstanceIds.join(), /^other-.+-0$/)
      assert.deepStrictEqual(options, {
        ...{ groupId: "other", topics: ["other"], isolationLevel: "read_uncommitted" },
        ...{ groupProtocol: "classic", partitionAssignmentStrategy: ["range"] },
        ...{ sessionTimeout: 30_000, heartbeatInterval: 9_000, rebalanceTimeout: 20_000 },
        ...{ fetchMaxWait: 50, maxPartitionFetchBytes: 1_000, maxRecordBytes: 5_000, maxBytesByTopic: new Map() }
      })
    })
  )

  scenario("BND-08 nothing is committed by itself: not by time, and not when a consumer closes", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* withTopic(1)
      yield* append("orders", 0, ["a", "b"])
      const never = Binding.make("orders", {
        ...{ ...orders, shutdownTimeout: "1 second", maxPollInterval: "10 days" },
        handler: ({ value }) => (value === "a" ? Effect.void : Effect.never)
      })
      const { close, of } = yield* start(never)
      yield* advance("1 hour")
      assert.deepStrictEqual(
        of("Committed").map(({ offset }) => offset),
        [1n]
      )
      yield* inTime(close)
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
    })
  )

  scenario("BND-08 a key or a value that cannot be read never reaches the handler, nor does an aborted record", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* withTopic(1)
      const number = Serde.json(Schema.Int)
      yield* memory.append("orders", 0, [{ key: bytes("1"), value: bytes("1") }])
      yield* memory.append("orders", 0, [{ key: bytes("1"), value: bytes("{") }])
      yield* memory.append("orders", 0, [{ key: bytes("{"), value: bytes("1") }])
      yield* memory.appendAborted("orders", 0, [{ key: bytes("3"), value: bytes("3") }])
      yield* memory.append("orders", 0, [{ key: bytes("4"), value: bytes("4") }])
      const seen: Array<unknown> = []
      const { connector } = yield* start(
        Binding.make("orders", {
          ...{ ...orders, key: number, value: number },
          handler: ({ key, value }) => Effect.sync(() => seen.push([key, value]))
        })
      )
      yield* settle
      assert.deepStrictEqual(seen, [
        [1, 1],
        [4, 4]
      ])
      assert.deepStrictEqual(
        (yield* memory.log("orders.DLT", 0)).map(({ key, value }) => [text(key), text(value)]),
        [
          ["1", "{"],
          ["{", "1"]
        ]
      )
      assert.strictEqual((yield* connector.snapshot("orders")).partitions[0]?.lag, 0n)
    })
  )

  scenario("BND-08 a batch has maxPollRecords at most, and may take 70 % of maxPollInterval", () =>
    Effect.gen(function* () {
      yield* withTopic(1)
      yield* append("orders", 0, ["a", "b", "c", "d", "e"])
      const sizes: Array<number> = []
      const { of } = yield* start(
        Binding.makeBatch("orders", {
          ...{ ...orders, maxPollRecords: 2, maxPollInterval: "10 seconds", retry: RetryPolicy.none },
          handleBatch: ({ deliveries }) => {
            sizes.push(deliveries.length)
            return sizes.length < 3 ? Effect.void : Effect.never
          }
        })
      )
      yield* settle
      assert.deepStrictEqual(sizes, [2, 2, 1])
      yield* advance("6999 millis")
      assert.strictEqual(of("ProcessingBudgetReached").length, 0)
      yield* advance("1 millis")
      assert.strictEqual(of("ProcessingBudgetReached").length, 1)
    })
  )

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
