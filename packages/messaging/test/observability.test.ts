import { assert, describe, it } from "@effect/vitest"
import { Broker, BrokerError, Serde } from "@eventbus/core"
import {
  KafkaHealth,
  Message,
  MessageBroker,
  MessageBrokerFactory,
  MessageConsumer,
  MessagingMetrics,
  MessagingRoutes,
  Topic
} from "@eventbus/messaging"
import { MemoryBroker, VirtualClock } from "@eventbus/testkit"
import { Effect, Fiber, Layer, Metric, Schema } from "effect"
import { HttpRouter } from "effect/http"
import { TestClock } from "effect/testing"
import * as Memory from "./memory.ts"

const own = Effect.provideService(Metric.MetricRegistry, new Map())

const values = Effect.map(Metric.snapshot, (all) =>
  Object.fromEntries(
    all
      .filter(({ id }) => id.startsWith("kafka.messaging."))
      .map((series) => [
        `${series.id} ${series.attributes?.["topic"]} ${series.attributes?.["operation"]}`,
        series.type === "Histogram"
          ? [series.state.count, series.state.sum]
          : Number((series.state as { count: number }).count)
      ])
  )
)

describe("metrics of messages", () => {
  it.effect(
    "MSG-22 MSG-45 MSG-46 sends, failures, handled messages and dead letters are counted per topic, and timed",
    () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* values, {})
        const topic = Topic.json("orders", Schema.Struct({ id: Schema.Int }))
        const broker = yield* MessageBroker.MessageBroker
        yield* broker.declareTopics([{ name: "orders", partitions: 1 }])
        const layer = MessageBrokerFactory.layer({ brokers: [Layer.succeed(MessageBroker.MessageBroker, broker)] })
        const consumer = MessageConsumer.make({
          ...{ topics: [topic], groupId: "g" },
          handle: ({ payload }) =>
            Effect.andThen(Effect.sleep(250), payload.id === 1 ? Effect.void : Effect.die(new TypeError("x")))
        })
        yield* Effect.gen(function* () {
          const { getDefaultProducer } = yield* MessageBrokerFactory.MessageBrokerFactory
          const { send } = yield* getDefaultProducer
          for (const id of [1, 2, 1.5]) yield* send({ id }, topic)
          let found: Readonly<Record<string, unknown>> = {}
          yield* Effect.repeat(
            Effect.andThen(
              Effect.sleep(50),
              Effect.map(values, (now) => (found = now))
            ),
            { until: (now) => "kafka.messaging.messages.dlq orders dlq" in now, times: 200 }
          )
          assert.deepInclude(found, {
            "kafka.messaging.messages.sent orders sent": 2,
            "kafka.messaging.messages.failed orders failed": 1,
            "kafka.messaging.messages.received orders received": 1,
            "kafka.messaging.messages.dlq orders dlq": 1,
            "kafka.messaging.process.latency orders process": [2, 0.5]
          })
          assert.strictEqual((found["kafka.messaging.send.latency orders send"] as ReadonlyArray<number>)[0], 2)
        }).pipe(Effect.provide(Layer.provideMerge(MessageConsumer.layer(consumer), layer)))
      }).pipe(Effect.provide(Layer.provideMerge(Memory.layer(), VirtualClock.layer)), own)
  )

  it.effect("MSG-04 MSG-22 a sendAndWait that gets no answer in time is a failed send", () =>
    Effect.gen(function* () {
      const silent = MessageBroker.MessageBroker.of({
        ...(yield* MessageBroker.MessageBroker),
        ...{ sendTimeoutMillis: 5_000, send: () => Effect.never }
      })
      const layer = MessageBrokerFactory.layer({ brokers: [Layer.succeed(MessageBroker.MessageBroker, silent)] })
      const { getDefaultProducer } = yield* Effect.provide(MessageBrokerFactory.MessageBrokerFactory, layer)
      const { sendAndWait } = yield* getDefaultProducer
      const message = yield* Message.of("x", Topic.make("silent", Serde.string))
      const waiting = yield* Effect.forkChild(Effect.flip(sendAndWait(message)))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* Fiber.join(waiting))._tag, "MessagingException")
      assert.deepInclude(yield* values, { "kafka.messaging.messages.failed silent failed": 1 })
    }).pipe(Effect.provide(Memory.layer()), own)
  )

  it.effect("MSG-46 own code starts and stops timers, and counts", () =>
    Effect.gen(function* () {
      const metrics = yield* MessagingMetrics.make("KAFKA")
      const timer = yield* metrics.startSendTimer
      yield* TestClock.adjust("2 seconds")
      yield* metrics.stopSendTimer(timer, "t")
      yield* metrics.stopProcessTimer(timer, "t")
      yield* metrics.recordMessageSent("t")
      yield* metrics.recordMessageSent("t")
      yield* metrics.recordMessageFailed("t")
      assert.deepStrictEqual(yield* values, {
        "kafka.messaging.send.latency t send": [1, 2],
        "kafka.messaging.process.latency t process": [1, 2],
        "kafka.messaging.messages.sent t sent": 2,
        "kafka.messaging.messages.failed t failed": 1
      })
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )
})

const withAdmin = (describeCluster: Broker.Admin["describeCluster"]) =>
  Layer.effect(
    Broker.Broker,
    Effect.map(Broker.Broker, (broker) => ({
      ...broker,
      admin: Effect.map(broker.admin, (admin) => ({ ...admin, describeCluster }))
    }))
  ).pipe(Layer.provide(MemoryBroker.layer()))

describe("health of Kafka", () => {
  it.effect("MSG-47 a cluster that answers is UP, with its id, brokers and controller", () =>
    Effect.gen(function* () {
      const health = yield* KafkaHealth.checkHealth
      assert.match((health as KafkaHealth.Up).clusterId, /^memory-/)
      assert.deepStrictEqual(health, {
        ...{ status: "UP", clusterId: (health as KafkaHealth.Up).clusterId, brokersAvailable: 2 },
        brokers: "memory:9092 (id=0),memory:9093 (id=1)",
        ...{ controllerId: 0, controllerHost: "memory:9092" }
      })
      assert.isTrue(KafkaHealth.isHealthy(health))
    }).pipe(Effect.provide(MemoryBroker.layer({ brokerCount: 2 })))
  )

  it.effect("MSG-47 a cluster that does not answer is DOWN after 10 seconds, with the error and its type", () =>
    Effect.gen(function* () {
      const asked = yield* Effect.forkChild(KafkaHealth.checkHealth)
      yield* TestClock.adjust(9_999)
      assert.isUndefined(asked.pollUnsafe())
      yield* TestClock.adjust(1)
      const health = yield* Fiber.join(asked)
      assert.deepInclude(health, { status: "DOWN", errorType: "RequestTimedOut" })
      assert.deepStrictEqual(Object.keys(health).toSorted(), ["error", "errorType", "status"])
      assert.isFalse(KafkaHealth.isHealthy(health))
    }).pipe(Effect.provide(withAdmin(Effect.never)))
  )

  it.effect("MSG-47 an error, and a cluster without a broker, are DOWN", () =>
    Effect.gen(function* () {
      const away = new BrokerError.BrokerUnavailable({ brokers: ["k:9092"], detail: "refused" })
      const failed = yield* Effect.provide(KafkaHealth.checkHealth, withAdmin(Effect.fail(away)))
      assert.deepStrictEqual(failed, { status: "DOWN", error: away.message, errorType: "BrokerUnavailable" })
      const empty = Effect.succeed({ clusterId: "c", brokers: [], controller: undefined })
      assert.strictEqual((yield* Effect.provide(KafkaHealth.checkHealth, withAdmin(empty))).status, "DOWN")
    })
  )
})

describe("routes", () => {
  const answer = (path: string, layer: Layer.Layer<Broker.Broker>) =>
    Effect.acquireUseRelease(
      Effect.sync(() =>
        HttpRouter.toWebHandler(MessagingRoutes.layer().pipe(Layer.provide(layer)), { disableLogger: true })
      ),
      ({ handler }) =>
        Effect.promise(async () => {
          const response = await handler(new Request(`http://localhost${path}`))
          return [response.status, await response.json()] as const
        }),
      ({ dispose }) => Effect.promise(() => dispose())
    )

  it.effect("MSG-48 GET /actuator/kafka answers the health check, 200 when UP and 503 when DOWN", () =>
    Effect.gen(function* () {
      const [status, body] = yield* answer("/actuator/kafka", MemoryBroker.layer())
      assert.strictEqual(status, 200)
      assert.deepInclude(body, { status: "UP", brokersAvailable: 3, controllerId: 0 })
      const away = new BrokerError.BrokerUnavailable({ brokers: ["k:9092"], detail: "refused" })
      const [down, reason] = yield* answer("/actuator/kafka", withAdmin(Effect.fail(away)))
      assert.deepStrictEqual([down, (reason as { readonly errorType: string }).errorType], [503, "BrokerUnavailable"])
    })
  )

  it.effect("MSG-48 GET /actuator/metrics/kafka.messaging.* shows the metrics, by topic where it is asked for", () =>
    Effect.gen(function* () {
      const metrics = yield* MessagingMetrics.make("KAFKA")
      const [one, two] = [`r-${Math.random()}`, `s-${Math.random()}`]
      yield* metrics.recordMessageSent(one)
      yield* metrics.recordMessageSent(two)
      yield* metrics.recordMessageSent(two)
      metrics.unsafe.time("send", two, 0.5)
      const get = (path: string) => answer(path, MemoryBroker.layer())
      const name = "kafka.messaging.messages.sent"
      const [status, sent] = yield* get(`/actuator/metrics/${name}?tag=topic:${two}`)
      assert.deepStrictEqual(
        [status, sent],
        [
          200,
          {
            ...{ name, description: "Messages that the broker acknowledged" },
            measurements: [{ statistic: "COUNT", value: 2 }],
            availableTags: [
              { tag: "topic", values: [two] },
              { tag: "operation", values: ["sent"] }
            ]
          }
        ]
      )
      const [, names] = yield* get("/actuator/metrics")
      assert.includeMembers((names as { readonly names: Array<string> }).names, [name, "kafka.messaging.send.latency"])
      const [, all] = yield* get(`/actuator/metrics/kafka.messaging.*?tag=topic:${two}`)
      assert.deepStrictEqual(
        (all as ReadonlyArray<{ readonly name: string }>).map((each) => each.name),
        [name, "kafka.messaging.send.latency"]
      )
      const [missing, error] = yield* get("/actuator/metrics/kafka.messaging.nothing")
      assert.deepStrictEqual([missing, Object.keys(error as object)], [404, ["error"]])
    })
  )
})
