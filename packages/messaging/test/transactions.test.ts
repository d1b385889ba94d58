import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import { MessageBroker, MessageBrokerFactory, Topic } from "@eventbus/messaging"
import { MemoryBroker, VirtualClock } from "@eventbus/testkit"
import { Effect, Layer, Schema } from "effect"
import * as BareClient from "../../kafkajs/test/bareClient.ts"
import * as Memory from "./memory.ts"

const topic = Topic.json("orders", Schema.Struct({ id: Schema.Int }))

/** A cluster whose transactional producers need a second to connect. The id of each is noted. */
const connectingSlowly = (ids: Array<string>) =>
  Layer.effect(
    Broker.Broker,
    Effect.map(Broker.Broker, (broker) => ({
      ...broker,
      transactionalProducer: (options: Broker.TransactionalProducerOptions) =>
        Effect.sync(() => ids.push(options.transactionalId)).pipe(
          Effect.andThen(Effect.sleep("1 second")),
          Effect.andThen(broker.transactionalProducer(options))
        )
    }))
  )

describe("messages in transactions", () => {
  it.effect(
    "MSG-14 each message is committed in a transaction of its own; sends that come at once share one producer",
    () => {
      const ids: Array<string> = []
      const producer = { transactionalEnabled: true, transactionalIdPrefix: "docs-tx-", linger: 0 }
      const messaging = Memory.onBroker({ producer }).pipe(
        Layer.provide(connectingSlowly(ids)),
        Layer.provideMerge(MemoryBroker.layer()),
        Layer.provideMerge(VirtualClock.layer)
      )
      return Effect.gen(function* () {
        const broker = yield* MessageBroker.MessageBroker
        yield* broker.declareTopics([{ name: topic.name, partitions: 1 }])
        const layer = MessageBrokerFactory.layer({ brokers: [Layer.succeed(MessageBroker.MessageBroker, broker)] })
        const factory = yield* Effect.provide(MessageBrokerFactory.MessageBrokerFactory, layer)
        const { send } = yield* factory.getDefaultProducer
        const results = yield* Effect.forEach([1, 2, 3], (id) => send({ id }, topic), { concurrency: "unbounded" })
        const errors = results.map(({ errorMessage }) => errorMessage)
        assert.deepStrictEqual(errors, [undefined, undefined, undefined])
        assert.strictEqual(ids.length, 1)
        assert.match(ids[0]!, /^docs-tx-[0-9a-f]{8}-[0-9a-f-]{27}$/)
        const { log } = yield* MemoryBroker.MemoryBroker
        const committed = yield* log(topic.name, 0, "read_committed")
        const stored = committed.map(({ offset, transactional }) => `${offset} ${transactional}`)
        // The marker of each transaction takes an offset.
        assert.deepStrictEqual(stored, ["0 true", "2 true", "4 true"])
      }).pipe(Effect.provide(messaging))
    }
  )
})

const record = (text: string) => ({ key: null, value: new TextEncoder().encode(text), headers: [] })

KafkaSuite.shared("messages in transactions on Kafka", (brokers) => {
  // The bare client reads no snappy.
  const producer = { transactionalEnabled: true, transactionalIdPrefix: "messaging-tx-", compression: "gzip" } as const
  const ids: Array<string> = []
  const noting = Layer.effect(
    Broker.Broker,
    Effect.map(Broker.Broker, (broker) => ({
      ...broker,
      transactionalProducer: (options: Broker.TransactionalProducerOptions) => {
        ids.push(options.transactionalId)
        return broker.transactionalProducer(options)
      }
    }))
  )
  const messaging = Memory.onBroker({ producer }).pipe(Layer.provide(noting), Layer.provide(KafkaJs.layer({ brokers })))

  it.live(
    "MSG-14 C54 each is committed for readers of committed records, also after another producer took the transactional id",
    () =>
      Effect.gen(function* () {
        const broker = yield* MessageBroker.MessageBroker
        const orders = Topic.named(topic, `messaging-tx-${globalThis.crypto.randomUUID()}`)
        yield* broker.declareTopics([{ name: orders.name, partitions: 1 }])
        const layer = MessageBrokerFactory.layer({ brokers: [Layer.succeed(MessageBroker.MessageBroker, broker)] })
        const { send } = yield* (yield* Effect.provide(MessageBrokerFactory.MessageBrokerFactory, layer))
          .getDefaultProducer
        const sendAll = (numbers: ReadonlyArray<number>) =>
          Effect.forEach(numbers, (id) => send({ id }, orders, "k"), { concurrency: "unbounded" })
        const first = yield* sendAll([1, 2, 3])
        assert.deepStrictEqual(
          first.map(({ success }) => success),
          [true, true, true]
        )
        // Kafka fences a producer whose transaction it has given up, too.
        const [transactionalId = ""] = ids
        const rival = Effect.flatMap(Broker.Broker, ({ transactionalProducer }) =>
          Effect.flatMap(transactionalProducer({ transactionalId }), ({ transaction }) =>
            transaction(({ send }) =>
              Effect.andThen(send({ topic: orders.name, ...record("aborted") }), Effect.fail("aborted" as const))
            )
          )
        )
        const ended = yield* Effect.flip(rival.pipe(Effect.scoped, Effect.provide(KafkaJs.layer({ brokers }))))
        assert.strictEqual(ended, "aborted")
        yield* sendAll([4])
        const later = yield* sendAll([5, 6])
        assert.deepStrictEqual(
          later.map(({ errorMessage }) => errorMessage),
          [undefined, undefined]
        )
        const seen = yield* BareClient.observer(brokers, `${orders.name}-reader`, [orders.name])
        yield* Effect.repeat(Effect.sleep("50 millis"), { until: () => seen.some(({ value }) => value === '{"id":6}') })
        const values = seen.map(({ value }) => value).filter((value) => value !== '{"id":4}')
        assert.deepStrictEqual(values, ['{"id":1}', '{"id":2}', '{"id":3}', '{"id":5}', '{"id":6}'])
      }).pipe(Effect.scoped, Effect.provide(messaging)),
    60_000
  )
})
