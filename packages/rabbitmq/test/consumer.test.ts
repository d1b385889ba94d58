/** Retries, batches and names on RabbitMQ, beyond the contract. */
import { assert, it } from "@effect/vitest"
import { MessagingConfiguration } from "@eventbus/config"
import { EventBusError, Serde } from "@eventbus/core"
import {
  DeadLetterHeaders,
  Message,
  MessageBroker,
  MessageBrokerFactory,
  MessageConsumer,
  Topic
} from "@eventbus/messaging"
import { Context, Effect, Layer } from "effect"
import { asOperator, depth, letters, makePrefix, onRabbitMq, testBroker } from "./rabbit.ts"
import { Boom, Hopeless, orders, probing, sendOrder, until } from "./rig.ts"

const unobserved = { onDeadLetter: () => {} }

onRabbitMq("a consumer", () => {
  it.live("MSG-20 MSG-41 a retried message keeps id, key, headers and time; its dead letter tells of its failure", () =>
    Effect.gen(function* () {
      const { broker, prefix } = yield* testBroker()
      const probe = yield* probing(broker, {
        retry: { maxAttempts: 3, initialInterval: 50 },
        handle: () => Effect.fail(new Boom({ message: "boom" }))
      })
      yield* sendOrder(broker, 1, { key: "k1", headers: { tenant: "a" } })
      yield* until("the message is dead-lettered", () => probe.letters.length === 1)
      const seen = probe.calls.map(({ id, key, timestamp, headers }) => ({ id, key, timestamp, headers }))
      for (const one of seen) assert.deepStrictEqual(one, seen[0])
      assert.deepInclude(seen[0], { key: "k1", headers: { tenant: "a", "message-id": seen[0]!.id } })
      assert.deepStrictEqual(
        probe.calls.map(({ attempt }) => attempt),
        [1, 2, 3]
      )
      const [letter = assert.fail()] = yield* letters(`${prefix}.orders-dlq`)
      const { headers = {} } = letter.properties
      assert.deepInclude(headers, {
        ...{ tenant: "a", "message-id": seen[0]!.id, "x-eventbus-dlt-reason": "RETRIES_EXHAUSTED" },
        [DeadLetterHeaders.names.originalTopic]: "orders",
        [DeadLetterHeaders.names.exceptionClass]: "Boom",
        [DeadLetterHeaders.names.exceptionMessage]: "boom",
        [DeadLetterHeaders.names.retryCount]: "2"
      })
      assert.strictEqual(letter.fields.routingKey, "k1")
    }).pipe(Effect.scoped)
  )

  it.live(
    "C17 a handler that is slow while messages wait in the queue is called once, and its channel stays",
    () =>
      Effect.gen(function* () {
        const { broker, queue } = yield* testBroker({ prefetch: 1, concurrency: 1 })
        yield* Effect.scoped(probing(broker))
        for (let id = 0; id < 3; id++) yield* sendOrder(broker, id)
        // Longer than two looks at the queue.
        const { calls } = yield* probing(broker, {
          handle: ({ payload }) => (payload.id === 0 ? Effect.sleep("13 seconds") : Effect.void)
        })
        yield* until("all are handled", () => calls.some(({ payload }) => payload.id === 2))
        const ids = calls.map(({ payload }) => payload.id)
        assert.deepStrictEqual(ids, [0, 1, 2])
        assert.strictEqual(yield* depth(queue("orders", "g")), 0)
      }).pipe(Effect.scoped),
    30_000
  )

  it.live("a payload of null, as of a tombstone, stays null through a retry", () =>
    Effect.gen(function* () {
      const { broker } = yield* testBroker()
      const files = Topic.make("files", Serde.bytes)
      const seen: Array<Uint8Array | null> = []
      const consumer = MessageConsumer.make({
        ...{ topics: [files], groupId: "g", retry: { maxAttempts: 2, initialInterval: 50 } },
        handle: ({ payload, attempt }) => {
          seen.push(payload)
          return attempt === 1 ? Effect.fail(new Boom({ message: "once" })) : Effect.void
        }
      })
      yield* broker.consume(consumer, unobserved)
      yield* broker.send(yield* Message.of<Uint8Array | null>(null, files))
      yield* until("both tries", () => seen.length === 2)
      assert.deepStrictEqual(seen, [null, null])
    }).pipe(Effect.scoped)
  )

  it.live("a batch that fails from a message on: those before it are done, those behind it come again at once", () =>
    Effect.gen(function* () {
      const { broker, queue } = yield* testBroker()
      yield* Effect.scoped(probing(broker))
      for (let id = 0; id < 6; id++) yield* sendOrder(broker, id)
      const batches: Array<ReadonlyArray<number>> = []
      const consumer = MessageConsumer.makeBatch({
        ...{ topics: [orders], groupId: "g", concurrency: 1, retry: { maxAttempts: 2, initialInterval: 300 } },
        handleBatch: (messages) => {
          const ids = messages.map(({ payload }) => payload.id)
          batches.push(ids)
          const index = messages.findIndex(({ payload, attempt }) => payload.id === 2 && attempt === 1)
          return index < 0 ? Effect.void : Effect.fail(EventBusError.BatchProcessing.from(index, new Error("no")))
        }
      })
      yield* broker.consume(consumer, unobserved)
      const times = (id: number) => batches.flat().filter((other) => other === id).length
      yield* until("all were handled", () => new Set(batches.flat()).size === 6 && times(2) === 2)
      assert.deepStrictEqual([times(0), times(1)], [1, 1])
      // Those behind it in its batch were not handled with it.
      const [, ...behind] = batches.flat().slice(batches.flat().indexOf(2), 6)
      for (const id of behind) assert.isAtMost(times(id), 2)
      assert.strictEqual(yield* depth(queue("orders", "g")), 0)
    }).pipe(Effect.scoped)
  )

  it.live("groups and topics whose names look alike have queues of their own", () =>
    Effect.gen(function* () {
      const { broker } = yield* testBroker()
      const [one, two] = [Topic.named(orders, "a"), Topic.named(orders, "a:b")]
      const seen: Array<string> = []
      const consumer = (topic: typeof one, groupId: string) =>
        MessageConsumer.make({
          ...{ topics: [topic], groupId, name: `${topic.name}/${groupId}`, retry: { maxAttempts: 1 } },
          handle: () => Effect.sync(() => seen.push(`${topic.name}/${groupId}`))
        })
      for (const [topic, groupId] of [
        [one, "b:c"],
        [two, "c"],
        [one, "b:retry:1"]
      ] as const) {
        yield* broker.consume(consumer(topic, groupId), unobserved)
      }
      yield* broker.send(yield* Message.of({ id: 1 }, two))
      yield* until("the message was handled", () => seen.length > 0)
      yield* Effect.sleep("300 millis")
      assert.deepStrictEqual(seen, ["a:b/c"])
    }).pipe(Effect.scoped)
  )

  it.live("dead letters are read as any topic, and acknowledging one takes it out of its queue", () =>
    Effect.gen(function* () {
      const { broker, prefix } = yield* testBroker()
      const failing = yield* probing(broker, { handle: () => Effect.fail(new Hopeless({ message: "no" })) })
      yield* sendOrder(broker, 7)
      yield* until("the message is dead-lettered", () => failing.letters.length === 1)
      const seen: Array<unknown> = []
      const reader = MessageConsumer.make({
        ...{ topics: [Topic.named(orders, "orders-dlq")], groupId: "support", retry: { maxAttempts: 1 } },
        handle: ({ payload, headers }) => Effect.sync(() => seen.push([payload.id, headers["exception-class"]]))
      })
      yield* Effect.scoped(
        Effect.andThen(
          broker.consume(reader, unobserved),
          until("the letter is read", () => seen.length === 1)
        )
      )
      assert.deepStrictEqual(seen, [[7, "Hopeless"]])
      assert.strictEqual(yield* depth(`${prefix}.orders-dlq`), 0)
    }).pipe(Effect.scoped)
  )

  it.live("MSG-09 RABBITMQ is supported exactly when its layer is given", () =>
    Effect.gen(function* () {
      const { broker } = yield* testBroker()
      for (const brokers of [[], [Layer.succeed(MessageBroker.MessageBroker, broker)]]) {
        const context = yield* Layer.build(MessageBrokerFactory.layer({ brokers }))
        const { isSupported } = Context.get(context, MessageBrokerFactory.MessageBrokerFactory)
        assert.strictEqual(isSupported("RABBITMQ"), brokers.length === 1)
      }
    }).pipe(Effect.scoped)
  )

  it.live("MSG-12 the prefixes of the configuration stand before the names of exchanges and queues", () =>
    Effect.gen(function* () {
      const prefix = makePrefix()
      const text = `messaging.rabbitmq.enabled=true\nmessaging.rabbitmq.exchangePrefix=${prefix}\nmessaging.rabbitmq.queuePrefix=${prefix}`
      const { rabbitmq } = yield* MessagingConfiguration.parse(text)
      const { enabled, ...prefixes } = rabbitmq
      assert.isTrue(enabled)
      const { broker } = yield* testBroker(prefixes, prefixes.queuePrefix)
      yield* probing(broker)
      yield* asOperator(async (channel) => {
        await channel.checkExchange(`${prefix}.orders`)
        await channel.checkQueue(`${prefix}.orders:g`)
        await channel.checkQueue(`${prefix}.orders-dlq`)
      })
    }).pipe(Effect.scoped)
  )
})
