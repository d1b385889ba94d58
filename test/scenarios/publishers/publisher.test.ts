/** A typed publisher: what it writes, what it refuses, and how it goes through an outage, on a cluster in memory and a virtual clock. */
import { assert, describe } from "@effect/vitest"
import { Binding, Broker, BrokerError, Clusters, Partitioner, Publisher, Route, Serde } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect, Exit, Fiber, Layer, References, Schema, Scope } from "effect"
import { traced } from "../../observability/spans.ts"
import { advance, headersOf, inTime, scenario, settle, start, text, until, valuesOf } from "../bus.ts"

class Order extends Schema.Class<Order>("Order")({ id: Schema.String, cents: Schema.Int }) {}

const orders = Publisher.make({ topic: "orders", key: Serde.string, value: Serde.json(Order) })
const order = (id: string) => new Order({ id, cents: 1250 })
const utf8 = new TextEncoder()

const createTopic = (topic = "orders", partitions = 1) =>
  MemoryBroker.MemoryBroker.use((memory) => memory.createTopic(topic, { partitions }))
const logOf = (topic = "orders", partition = 0) =>
  MemoryBroker.MemoryBroker.use((memory) => memory.log(topic, partition))

/** Runs it with the producers of a program of its own. */
const withProducers = <A, E>(
  effect: Effect.Effect<A, E, Publisher.Producers | MemoryBroker.MemoryBroker | Broker.Broker | Scope.Scope>,
  options?: Broker.ProducerOptions
) => Effect.provide(effect, Publisher.layer(options))

describe("RCH-05 a typed publisher writes", () => {
  scenario("key, value, headers, time and codec, and answers partition and offset", () =>
    withProducers(
      Effect.gen(function* () {
        yield* createTopic("orders", 3)
        const publisher = Publisher.make({
          topic: "orders",
          key: Serde.string,
          value: Serde.json(Order),
          compression: "gzip",
          headers: { "content-type": "application/json", source: "shop" }
        })
        const headers = { source: "till 7", sum: Uint8Array.of(1, 2) }
        const message = { key: "ann", value: order("o-1"), headers, timestamp: 1_700_000_000_000 }
        const first = yield* publisher.publish(message)
        assert.deepStrictEqual(first, { topic: "orders", partition: 2, offset: 0n })
        assert.deepStrictEqual(yield* publisher.publish(message), { topic: "orders", partition: 2, offset: 1n })
        const [record] = yield* logOf("orders", 2)
        assert.strictEqual(text(record!.key), "ann")
        assert.strictEqual(text(record!.value), '{"id":"o-1","cents":1250}')
        assert.strictEqual(record!.timestamp, 1_700_000_000_000)
        assert.strictEqual(record!.compression, "gzip")
        assert.deepStrictEqual(
          record!.headers.map(({ key, value }) => [key, key === "sum" ? Array.from(value!) : text(value)]),
          [
            ["content-type", "application/json"],
            ["source", "till 7"],
            ["sum", [1, 2]]
          ]
        )
      })
    )
  )

  scenario("a message without a key where its serde takes none, and a tombstone", () =>
    withProducers(
      Effect.gen(function* () {
        yield* createTopic()
        const publisher = Publisher.make({
          topic: "orders",
          key: Serde.nullable(Serde.string),
          value: Serde.nullable(Serde.json(Order))
        })
        yield* publisher.publish({ value: order("o-1") })
        yield* publisher.publish({ key: "ann", value: null })
        yield* Publisher.make({ topic: "orders" }).publish({ value: utf8.encode("bytes") })
        assert.deepStrictEqual(
          (yield* logOf()).map(({ key, value }) => [text(key), text(value)]),
          [
            [null, '{"id":"o-1","cents":1250}'],
            ["ann", null],
            [null, "bytes"]
          ]
        )
      })
    )
  )

  scenario("to the partition that the message names, or that the partitioner chooses", () =>
    withProducers(
      Effect.gen(function* () {
        yield* createTopic("orders", 3)
        const asked: Array<number> = []
        const publisher = Publisher.make({
          topic: "orders",
          key: Serde.string,
          value: Serde.string,
          partitioner: ({ key }, partitions) => {
            asked.push(partitions)
            return key === "by key" ? undefined : key === "wrong" ? partitions : Number(key)
          }
        })
        assert.strictEqual((yield* publisher.publish({ key: "1", value: "v" })).partition, 1)
        assert.strictEqual((yield* publisher.publish({ key: "1", value: "v", partition: 0 })).partition, 0)
        const byKey = Partitioner.partitionFor(utf8.encode("by key"), 3)
        assert.strictEqual((yield* publisher.publish({ key: "by key", value: "v" })).partition, byKey)
        assert.deepStrictEqual(asked, [3, 3])
        const refused = yield* Effect.flip(publisher.publish({ key: "wrong", value: "v" }))
        assert.strictEqual(refused._tag, "RecordRejected")
        assert.include(refused.message, "its partitioner failed: it returned 3; a whole number from 0 to 2 is expected")
      })
    )
  )

  scenario("a batch in one request, in its order", () => {
    const requests: Array<string> = []
    return Effect.gen(function* () {
      const memory = yield* MemoryBroker.make({ onEvent: ({ _tag }) => requests.push(_tag) })
      yield* memory.createTopic("orders")
      const published = orders.publishAll(["a", "b", "c"].map((key) => ({ key, value: order(key) })))
      const producers = Layer.provide(Publisher.layer(), Layer.succeed(Broker.Broker, memory.broker))
      const stored = yield* Effect.provide(published, producers)
      assert.deepStrictEqual(
        stored.map(({ offset }) => offset),
        [0n, 1n, 2n]
      )
      assert.strictEqual(requests.filter((tag) => tag === "Appended").length, 1)
      assert.deepStrictEqual(yield* Effect.provide(orders.publishAll([]), producers), [])
    })
  })

  scenario("the trace that it is published in, and no header of the connector", () =>
    traced((spans) =>
      withProducers(
        Effect.gen(function* () {
          yield* createTopic()
          const headers = [
            { key: "x-eventbus-dlt-reason", value: utf8.encode("another record's") },
            { key: "tenant", value: utf8.encode("t1") },
            { key: "tenant", value: null }
          ]
          yield* orders.publish({ key: "ann", value: order("o-1"), headers }).pipe(Effect.withSpan("checkout"))
          const [record] = yield* logOf()
          const sent = spans.find(({ name }) => name === "send orders")
          assert.include(headersOf(record).get("traceparent"), sent!.spanId)
          assert.deepStrictEqual(
            record!.headers.map(({ key }) => key),
            ["tenant", "tenant", "traceparent"]
          )
        })
      )
    )
  )
})

describe("RCH-05 a value that the serde refuses", () => {
  scenario("is an EncodeFailure that says what to pass, and names topic, part and message; nothing is sent", () =>
    withProducers(
      Effect.gen(function* () {
        yield* createTopic()
        // TypeScript takes an object of the same shape for an instance of the class.
        const plain = yield* Effect.flip(orders.publish({ key: "ann", value: { id: "o-1", cents: 1250 } }))
        assert.strictEqual(
          plain.message,
          "json cannot encode the value for topic 'orders': Expected Order: pass an instance of the class, such as new Order(…)"
        )
        const untyped = { key: 7, value: order("o-1") } as unknown as Publisher.Message<string, Order>
        const second = yield* Effect.flip(orders.publishAll([{ key: "ann", value: order("o-1") }, untyped]))
        assert.strictEqual(
          second.message,
          "string cannot encode the key of message 1 for topic 'orders': Expected a string, got number"
        )
        const without = { value: order("o-1") } as Publisher.Message<string, Order>
        assert.include((yield* Effect.flip(orders.publish(without))).message, "Expected a string, got null")
        const lone = { key: "ann", value: order("o-1"), headers: { tenant: "\uD800" } }
        assert.include((yield* Effect.flip(orders.publish(lone))).message, "header 'tenant' has a lone surrogate")
        assert.deepStrictEqual(yield* logOf(), [])
      })
    )
  )

  scenario("an instance inside of another value is named with its path", () =>
    withProducers(
      Effect.gen(function* () {
        const lines = Publisher.make({ topic: "orders", value: Serde.json(Schema.Struct({ first: Order })) })
        const failed = yield* Effect.flip(lines.publish({ value: { first: { id: "o-1", cents: 1 } } }))
        assert.include(
          failed.message,
          'Expected Order: pass an instance of the class, such as new Order(…) at ["first"]'
        )
      })
    )
  )
})

describe("RCH-05 the shared producer", () => {
  scenario("is one for all publishers of a cluster, connects with the first record, and closes with the layer", () =>
    Effect.gen(function* () {
      yield* createTopic()
      yield* createTopic("payments")
      const payments = Publisher.make({ topic: "payments", value: Serde.string })
      const producers = MemoryBroker.MemoryBroker.use(({ usage }) => Effect.map(usage, (now) => now.producers))
      yield* withProducers(
        Effect.gen(function* () {
          assert.strictEqual(yield* producers, 0)
          yield* Effect.all([orders.publish({ key: "ann", value: order("o-1") }), payments.publish({ value: "p-1" })], {
            concurrency: "unbounded"
          })
          assert.strictEqual(yield* producers, 1)
        })
      )
      assert.strictEqual(yield* producers, 0)
    })
  )

  scenario(
    "closing waits for what is on its way",
    () =>
      Effect.gen(function* () {
        yield* createTopic()
        const scope = yield* Scope.make()
        const context = yield* Layer.buildWithScope(Publisher.layer(), scope)
        const sent = yield* Effect.forkChild(
          Effect.provideContext(orders.publish({ key: "ann", value: order("o-1") }), context)
        )
        yield* settle
        const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        yield* settle
        assert.isUndefined(closing.pollUnsafe())
        yield* advance("3 seconds")
        assert.strictEqual((yield* Fiber.join(sent)).offset, 0n)
        yield* Fiber.join(closing)
      }),
    { latency: { produce: "2 seconds" } }
  )

  scenario("a cluster that is away is waited for, and then all records go out in their order", () =>
    Effect.gen(function* () {
      yield* createTopic()
      const memory = yield* MemoryBroker.MemoryBroker
      let isAway = true
      let tried = 0
      const annotations: Array<unknown> = []
      const away = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "away" })
      const broker: Broker.Broker["Service"] = {
        ...memory.broker,
        producer: (options) =>
          Effect.flatMap(References.CurrentLogAnnotations, (ofLines) => {
            tried++
            annotations.push(ofLines)
            return isAway ? Effect.fail(away) : memory.broker.producer(options)
          })
      }
      const producers = Layer.provide(Publisher.layer(), Layer.succeed(Broker.Broker, broker))
      const all = Effect.forEach(["a", "b", "c"], (id) => orders.publish({ key: "ann", value: order(id) }), {
        concurrency: "unbounded"
      })
      const publishing = yield* Effect.forkChild(
        all.pipe(Effect.annotateLogs("request", "of the first caller"), Effect.provide(producers))
      )
      yield* advance("30 seconds")
      assert.isUndefined(publishing.pollUnsafe())
      assert.isAbove(tried, 20)
      isAway = false
      yield* until(() => publishing.pollUnsafe() !== undefined, "1 second")
      assert.deepStrictEqual(
        (yield* valuesOf("orders")).map((value) => JSON.parse(value!).id),
        ["a", "b", "c"]
      )
      // The producer outlives its first caller, so its log lines name none.
      assert.deepStrictEqual(annotations.at(-1), {})
    })
  )

  scenario(
    "an outage longer than the delivery timeout, and a topic that does not exist, are typed failures",
    () =>
      Effect.gen(function* () {
        const toMissing = Publisher.make({ topic: "missing", value: Serde.string, partitioner: () => 0 })
        yield* createTopic()
        const failures = Effect.all([
          Effect.flip(Publisher.make({ topic: "missing" }).publish({ value: null })),
          Effect.flip(toMissing.publish({ value: "v" })),
          Effect.flip(orders.publish({ key: "ann", value: order("o-1") }))
        ])
        const found = yield* inTime(withProducers(failures, { deliveryTimeout: "20 seconds" }))
        assert.deepStrictEqual(
          found.map(({ _tag }) => _tag),
          ["UnknownTopic", "UnknownTopic", "RequestTimedOut"]
        )
      }),
    { faults: FaultPlan.make([FaultPlan.chance(1, { operation: "produce" }, { _tag: "LoseRequest" })]) }
  )

  scenario("goes to the cluster that a publisher names, and an alias without a cluster is a failure", () =>
    Effect.gen(function* () {
      const east = yield* MemoryBroker.make()
      const west = yield* MemoryBroker.make()
      yield* west.createTopic("orders")
      const brokers = new Map([
        ["default", east.broker],
        ["west", west.broker]
      ])
      const clusters = Layer.merge(Layer.succeed(Broker.Broker, east.broker), Layer.succeed(Clusters.Clusters, brokers))
      const toWest = Publisher.make({ topic: "orders", cluster: "west", value: Serde.string })
      const toNorth = Publisher.make({ topic: "orders", cluster: "north", value: Serde.string })
      const producers = Layer.provide(Publisher.layer(), clusters)
      yield* Effect.provide(toWest.publish({ value: "v" }), producers)
      assert.strictEqual((yield* west.log("orders", 0)).length, 1)
      const unknown = yield* Effect.flip(Effect.provide(toNorth.publish({ value: "v" }), producers))
      assert.include(unknown.message, "There is no cluster 'north'. Known are: [default, west].")
    })
  )

  scenario("options and settings of another kind are refused before anything is sent", () =>
    Effect.gen(function* () {
      const wrong = Publisher.layer({ acks: "some" as never })
      const refused = yield* Effect.flip(Effect.provide(Publisher.Producers, wrong))
      assert.include(refused.message, "acks: found")
      assert.throws(() => Publisher.make({ topic: "", value: Serde.string }), /Publisher.make.topic: found ''/)
      assert.throws(() => Publisher.make({ topic: "orders", value: {} as never }), /Publisher.make.value/)
    })
  )
})

describe("RCH-05 in a transactional handler", () => {
  const receipts = Publisher.make({ topic: "receipts", key: Serde.string, value: Serde.json(Order) })
  const binding = (publisher: Publisher.Publisher<string, Order>) =>
    Binding.makeTransactional("orders", {
      topic: "orders",
      groupId: "billing",
      key: Serde.string,
      value: Serde.string,
      handler: ({ key, value }) =>
        Effect.andThen(
          publisher.inTransaction.publish({ key, value: order(value) }),
          value === "bad" ? Effect.fail("declined" as const) : Effect.void
        ),
      onError: () => Route.deadLetter()
    })

  scenario("a record of the transaction is seen with the handled record's offset, or never", () =>
    withProducers(
      Effect.gen(function* () {
        yield* createTopic()
        yield* createTopic("receipts")
        yield* Publisher.make({ topic: "orders", key: Serde.string, value: Serde.string }).publishAll([
          { key: "ann", value: "good" },
          { key: "ann", value: "bad" }
        ])
        const app = yield* start(binding(receipts))
        yield* until(() => app.of("Settled").length === 2, "1 second")
        assert.deepStrictEqual(
          (yield* valuesOf("receipts")).map((value) => JSON.parse(value!).id),
          ["good"]
        )
      })
    )
  )

  scenario("a publisher of another cluster is refused: its record would go to the wrong one", () =>
    withProducers(
      Effect.gen(function* () {
        yield* createTopic()
        yield* createTopic("receipts")
        const elsewhere = Publisher.make({
          topic: "receipts",
          cluster: "west",
          key: Serde.string,
          value: Serde.json(Order)
        })
        const app = yield* start(binding(elsewhere))
        yield* Publisher.make({ topic: "orders", key: Serde.string, value: Serde.string }).publish({
          key: "ann",
          value: "good"
        })
        yield* until(() => app.of("Settled").length === 1, "1 second")
        assert.deepStrictEqual(yield* valuesOf("receipts"), [])
        const [letter] = yield* logOf("orders.DLT")
        assert.include(
          headersOf(letter).get("x-eventbus-last-exception-message"),
          "its publisher's cluster is 'west', and the transaction is one of 'default'"
        )
      })
    )
  )
})
