import { assert, describe, it } from "@effect/vitest"
import { MessagingConfiguration } from "@eventbus/config"
import {
  KafkaMessaging,
  Message,
  MessageBroker,
  MessageBrokerFactory,
  MessageConsumer,
  MessageResult,
  MessagingException,
  Topic
} from "@eventbus/messaging"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Exit, Layer, Logger, Option, Schema } from "effect"
import { TestClock } from "effect/testing"

const { MessageBrokerFactory: Factory } = MessageBrokerFactory
const topic = Topic.json("t", Schema.String)

class NoRoute extends Schema.TaggedError<NoRoute>()("NoRoute", {}) {
  override get message(): string {
    return "no route"
  }
}

/** A broker that answers every send with `answer`. */
const broker = (type: string, answer: Effect.Effect<MessageResult.Acknowledgement, Error> = Effect.succeed({})) =>
  Layer.succeed(MessageBroker.MessageBroker, {
    ...{ type, capabilities: new Set<MessageBroker.Capability>(), sendTimeoutMillis: 30_000 },
    send: () => answer,
    consume: () => Effect.void,
    declareTopics: () => Effect.void,
    health: Effect.succeed({ status: "UP", details: {} } as const)
  })

const factory = (options: MessageBrokerFactory.Options<ReturnType<typeof broker>>) =>
  Effect.provide(Factory, MessageBrokerFactory.layer(options))

describe("messages", () => {
  it("C05 MSG-06 the result of a failure has a text, whatever was thrown", () => {
    const odd = [
      ...[undefined, null, 7, Symbol("x"), Object.create(null), { toString: () => assert.fail() }],
      Object.defineProperty(new Error("m"), "message", { get: () => assert.fail() })
    ]
    for (const thrown of odd) {
      assert.isString(MessageResult.failure("1", "t", 0, thrown).errorMessage)
    }
    assert.strictEqual(MessageResult.failure("1", "t", 0, "text").errorMessage, "text")
    assert.strictEqual(MessageResult.failure("1", "t", 0, new Error("no")).errorMessage, "no")
  })

  it.effect("MSG-01 MSG-02 a message copies its headers and never changes; copies have another topic or key", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(5_000)
      const headers: Record<string, string> = { a: "1" }
      const message = yield* Message.of("x", topic, "k", headers)
      headers["a"] = "2"
      assert.deepStrictEqual([message.headers, message.timestamp, message.key], [{ a: "1" }, 5_000, "k"])
      assert.match(message.id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
      assert.isTrue(Object.isFrozen(message) && Object.isFrozen(message.headers))
      const other = Topic.named(topic, "other")
      assert.deepStrictEqual(Message.withTopic(message, other), { ...message, topic: other })
      assert.deepStrictEqual(Message.withKey(message, undefined), { ...message, key: undefined })
      assert.deepStrictEqual([message.topic, message.key], [topic, "k"])
      const plain = yield* Message.of("x", topic)
      assert.deepStrictEqual([plain.key, plain.headers], [undefined, {}])
      assert.notStrictEqual(plain.id, message.id)
    })
  )

  it("MSG-06 results: a success with and without place, a failure by text and by error", () => {
    const common = { messageId: "i", topic: "t", timestamp: 7 }
    const place = { partition: 1, offset: 2n }
    const none = { partition: undefined, offset: undefined }
    const fine = { success: true, errorMessage: undefined, cause: undefined }
    assert.deepStrictEqual(MessageResult.success("i", "t", 7, place), { ...common, ...place, ...fine })
    assert.deepStrictEqual(MessageResult.success("i", "t", 7), { ...common, ...none, ...fine })
    assert.deepInclude(MessageResult.failure("i", "t", 7, "no"), { ...common, success: false, errorMessage: "no" })
    assert.deepInclude(MessageResult.failure("i", "t", 7, new Error("why")), { success: false, errorMessage: "why" })
  })

  it("MSG-11 exceptions carry broker, message, topic and cause, and say the seed's texts", () => {
    const cause = new Error("c")
    const send = MessagingException.sendFailed("KAFKA", "id", "t", cause)
    assert.deepInclude(send, { brokerType: "KAFKA", messageId: "id", topic: "t", cause })
    assert.strictEqual(send.message, "Failed to send message id to topic t via KAFKA")
    const receive = MessagingException.receiveFailed("RABBITMQ", "t", cause)
    assert.strictEqual(receive.message, "Failed to receive message from topic t via RABBITMQ")
    const plain = new MessagingException.MessagingException({ text: "text" })
    assert.deepStrictEqual([plain.message, plain.cause, plain.retryable], ["text", undefined, true])
  })

  it("settings of consumers and retries are refused all at once, with path, value and range", () => {
    const refused = (run: () => unknown): ReadonlyArray<string> => {
      try {
        run()
        return []
      } catch (error) {
        return (error as { readonly issues: ReadonlyArray<{ readonly path: string }> }).issues.map(({ path }) => path)
      }
    }
    const handle = () => Effect.void
    const options = {
      topics: [topic, topic],
      groupId: "",
      concurrency: 0,
      retry: { maxAttempts: 0, maxInterval: -1 },
      handle
    }
    assert.deepStrictEqual(refused(() => MessageConsumer.make(options as never)).toSorted(), [
      ...["concurrency", "groupId", "retry.maxAttempts", "retry.maxInterval", "topics"].map(
        (path) => `MessageConsumer.make.${path}`
      )
    ])
    assert.deepStrictEqual(
      refused(() => KafkaMessaging.layer({ defaultPartitions: 0, consumer: { concurrency: 0 } })),
      ["kafka.defaultPartitions", "kafka.consumer.concurrency"]
    )
  })
})

describe("MessageBrokerFactory", () => {
  it.effect(
    "MSG-07 MSG-09 ruling 90 it finds one producer for each layer; a broker without a layer is not supported",
    () =>
      Effect.gen(function* () {
        const { getProducer, getProducerIfAvailable, getSupportedBrokers, isSupported } = yield* factory({
          brokers: [broker("KAFKA")]
        })
        assert.strictEqual((yield* getProducer("KAFKA")).brokerType, "KAFKA")
        assert.isTrue(Option.isSome(getProducerIfAvailable("KAFKA")))
        assert.isTrue(Option.isNone(getProducerIfAvailable("RABBITMQ")))
        assert.deepStrictEqual([isSupported("KAFKA"), isSupported("RABBITMQ")], [true, false])
        assert.deepStrictEqual(Array.from(getSupportedBrokers), ["KAFKA"])
        const error = yield* Effect.flip(getProducer("RABBITMQ"))
        assert.strictEqual(
          error.message,
          "No broker RABBITMQ is registered. Registered: KAFKA. Give its layer to MessageBrokerFactory.layer."
        )
      })
  )

  it.effect("MSG-08 ruling 66 the named default wins where it is registered, else KAFKA, RABBITMQ, the first one", () =>
    Effect.gen(function* () {
      const defaultOf = (types: ReadonlyArray<string>, defaultBroker?: string) =>
        Effect.map(
          factory({ brokers: types.map((type) => broker(type)), defaultBroker }),
          (one) => one.getDefaultBrokerType
        )
      assert.strictEqual(yield* defaultOf(["NATS", "RABBITMQ", "KAFKA"]), "KAFKA")
      assert.strictEqual(yield* defaultOf(["NATS", "RABBITMQ"]), "RABBITMQ")
      assert.strictEqual(yield* defaultOf(["NATS", "SQS"]), "NATS")
      assert.strictEqual(yield* defaultOf(["KAFKA", "RABBITMQ"], "RABBITMQ"), "RABBITMQ")
      assert.strictEqual(yield* defaultOf(["RABBITMQ", "NATS"], "KAFKA"), "RABBITMQ")
      assert.strictEqual(yield* defaultOf([]), undefined)
    })
  )

  it.effect("MSG-08 a default broker that nobody registered is warned of, and one that is left out is not", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const capture = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
      const skipped = [{ type: "RABBITMQ", reason: "messaging.rabbitmq.enabled is false" }]
      for (const defaultBroker of ["KAFKA", "RABBITMQ", "PULSAR"]) {
        const options = { brokers: [broker("KAFKA")], defaultBroker, skipped }
        yield* Effect.scoped(Effect.provide(factory(options), capture))
      }
      assert.strictEqual(lines.length, 1)
      assert.include(lines[0], "The default broker PULSAR is not registered (registered: KAFKA); messages go to KAFKA")
    })
  )

  it.effect("MSG-07 two layers of one kind are refused; without a broker the default producer is a state error", () =>
    Effect.gen(function* () {
      const twice = yield* Effect.flip(factory({ brokers: [broker("KAFKA"), broker("KAFKA")] }))
      assert.include(twice.message, "provide KAFKA; allowed is one for each kind")
      const { getDefaultProducer } = yield* factory({ brokers: [] })
      assert.strictEqual((yield* Effect.flip(getDefaultProducer))._tag, "NoBrokerRegistered")
    })
  )

  it.effect(
    "MSG-04 send reports a failure in its result; sendAndWait raises it, at the latest after the time limit",
    () =>
      Effect.gen(function* () {
        const failing = yield* factory({ brokers: [broker("KAFKA", Effect.fail(new NoRoute()))] })
        const { send, sendAndWait } = yield* failing.getDefaultProducer
        const message = yield* Message.of("x", topic)
        assert.deepInclude(yield* send(message), { success: false, messageId: message.id, errorMessage: "no route" })
        assert.strictEqual((yield* Effect.flip(sendAndWait(message)))._tag, "MessagingException")
        const silent = yield* (yield* factory({ brokers: [broker("KAFKA", Effect.never)] })).getDefaultProducer
        const waiting = yield* Effect.forkChild(Effect.flip(silent.sendAndWait(message)))
        yield* TestClock.adjust(29_999)
        assert.isUndefined(waiting.pollUnsafe())
        yield* TestClock.adjust(1)
        const exit = waiting.pollUnsafe()
        assert.isTrue(exit !== undefined && Exit.isSuccess(exit))
        if (exit !== undefined && Exit.isSuccess(exit)) assert.include(String(exit.value.cause), "30000 ms")
        const defect = yield* (yield* factory({ brokers: [broker("KAFKA", Effect.die(new Error("bug")))] }))
          .getDefaultProducer
        assert.deepInclude(yield* defect.send(message), { success: false, errorMessage: "bug" })
      })
  )
})

describe("brokers of a configuration", () => {
  const started = (text: string) =>
    Effect.gen(function* () {
      const configuration = yield* MessagingConfiguration.parse(text)
      const calls: Array<ReadonlyArray<string>> = []
      const layer = MessageBrokerFactory.layerConfigured(configuration, {
        KAFKA: ({ bootstrapServers, settings }) => {
          calls.push(bootstrapServers)
          return KafkaMessaging.layer(settings).pipe(Layer.provide(MemoryBroker.layer()))
        },
        RABBITMQ: ({ queuePrefix }) => broker(`RABBITMQ${queuePrefix === "q" ? "" : "?"}`)
      })
      return { calls, layer }
    })

  it.effect(
    "MSG-16 without bootstrap-servers the program starts, and everything that needs a broker says why there is none",
    () =>
      Effect.gen(function* () {
        const { calls, layer } = yield* started("")
        let handled = 0
        const consumer = MessageConsumer.make({
          topics: [topic],
          groupId: "g",
          handle: () => Effect.sync(() => handled++)
        })
        yield* Effect.gen(function* () {
          const { getDefaultProducer, getProducer, isSupported } = yield* Factory
          assert.isFalse(isSupported("KAFKA"))
          const error = yield* Effect.flip(getDefaultProducer)
          assert.include(error.message, "KAFKA: spring.kafka.bootstrap-servers is not set")
          assert.include(
            (yield* Effect.flip(getProducer("KAFKA"))).message,
            "spring.kafka.bootstrap-servers is not set"
          )
        }).pipe(Effect.provide(Layer.provideMerge(MessageConsumer.layer(consumer), layer)))
        assert.deepStrictEqual([calls, handled], [[], 0])
      })
  )

  it.effect("MSG-12 MSG-13 the switches of messaging, Kafka and RabbitMQ", () =>
    Effect.gen(function* () {
      const kafka = "spring.kafka.bootstrap-servers=k:9092\n"
      const brokersOf = (text: string) =>
        Effect.gen(function* () {
          const { layer } = yield* started(text)
          const { getDefaultBrokerType, getSupportedBrokers } = yield* Effect.provide(Factory, layer)
          return [getDefaultBrokerType, ...getSupportedBrokers]
        })
      const rabbit = "messaging.rabbitmq.enabled=true\nmessaging.rabbitmq.queuePrefix=q\n"
      assert.deepStrictEqual(yield* brokersOf(kafka), ["KAFKA", "KAFKA"])
      assert.deepStrictEqual(yield* brokersOf(`${kafka}${rabbit}`), ["KAFKA", "KAFKA", "RABBITMQ"])
      assert.deepStrictEqual(yield* brokersOf(`${kafka}${rabbit}messaging.defaultBroker=rabbitmq`), [
        "RABBITMQ",
        "KAFKA",
        "RABBITMQ"
      ])
      assert.deepStrictEqual(yield* brokersOf(`${kafka}${rabbit}messaging.kafka.enabled=false`), [
        "RABBITMQ",
        "RABBITMQ"
      ])
      assert.deepStrictEqual(yield* brokersOf(`${kafka}${rabbit}messaging.enabled=false`), [undefined])
    })
  )

  it.effect("a consumer of a broker that nobody left out on purpose is refused", () =>
    Effect.gen(function* () {
      const consumer = MessageConsumer.make({
        topics: [topic],
        groupId: "g",
        brokerType: "NATS",
        handle: () => Effect.void
      })
      const run = Layer.build(MessageConsumer.layer(consumer)).pipe(
        Effect.provide(MessageBrokerFactory.layer({ brokers: [broker("KAFKA")] }))
      )
      assert.deepInclude(yield* Effect.flip(run), { _tag: "BrokerNotRegistered", brokerType: "NATS" })
    })
  )
})
