/** Outcomes: what is sent arrives as it was sent. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { assert } from "vitest"
import * as Message from "../Message.ts"
import { MessageBroker } from "../MessageBroker.ts"
import * as Topic from "../Topic.ts"
import {
  Away,
  asTexts,
  consume,
  DeadLetters,
  eventually,
  ids,
  Order,
  type Outcome,
  order,
  orders,
  producer,
  quickly,
  Refused,
  unique
} from "./harness.ts"

export const sending: ReadonlyArray<Outcome> = [
  {
    title: "MSG-01 MSG-22 a message arrives with its id, payload, key, headers and time",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const probe = yield* consume(topic)
      const { send } = yield* producer
      const message = yield* Message.of(order("ä-1", 2 ** 40), topic, "kéy", { tenant: "Müller & Söhne", empty: "" })
      const result = yield* send(message)
      assert.deepInclude(result, { success: true, messageId: message.id, topic: topic.name, errorMessage: undefined })
      yield* probe.awaits(1)
      const received = probe.calls[0]!.message
      assert.deepStrictEqual(received.payload, message.payload)
      assert.deepStrictEqual(
        [received.id, received.key, received.timestamp, received.topic.name, received.attempt],
        [message.id, "kéy", message.timestamp, topic.name, 1]
      )
      assert.include(received.headers, { tenant: "Müller & Söhne", empty: "", "message-id": message.id })
    })
  },
  {
    title: "MSG-06 a result names partition and offset, and the received message has the same",
    needs: "partitions",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const probe = yield* consume(topic)
      const { send } = yield* producer
      const results = [yield* send(order("1"), topic), yield* send(order("2"), topic)]
      assert.deepStrictEqual(
        results.map(({ partition, offset }) => [partition, offset]),
        [
          [0, 0n],
          [0, 1n]
        ]
      )
      yield* probe.awaits(2)
      assert.deepStrictEqual(
        probe.calls.map(({ message }) => [message.partition, message.offset]),
        [
          [0, 0n],
          [0, 1n]
        ]
      )
    })
  },
  {
    title: "MSG-03 MSG-04 a payload is sent without a message around it; sendAndWait answers like send",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const probe = yield* consume(topic)
      const { brokerType, send, sendAndWait } = yield* producer
      assert.strictEqual(brokerType, (yield* MessageBroker).type)
      const results = [
        yield* send(order("no key"), topic),
        yield* send(order("key"), topic, "k"),
        yield* sendAndWait(yield* Message.of(order("waited"), topic, "k"))
      ]
      assert.deepStrictEqual(
        results.map(({ success }) => success),
        [true, true, true]
      )
      yield* probe.awaits(3)
      assert.deepStrictEqual(
        probe.calls.map(({ message }) => [message.payload.id, message.key]),
        [
          ["no key", undefined],
          ["key", "k"],
          ["waited", "k"]
        ]
      )
    })
  },
  {
    title:
      "MSG-04 a payload that its topic refuses is a failed result, a MessagingException of sendAndWait, and is not sent",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const probe = yield* consume(topic)
      const { send, sendAndWait } = yield* producer
      const wrong = yield* Message.of({ id: "x", cents: 1.5 }, topic)
      const result = yield* send(wrong)
      assert.deepInclude(result, { success: false, messageId: wrong.id, topic: topic.name })
      assert.include(result.errorMessage ?? "", "cents")
      const error = yield* Effect.flip(sendAndWait(wrong))
      assert.deepInclude(error, { brokerType: (yield* MessageBroker).type, messageId: wrong.id, topic: topic.name })
      assert.strictEqual(
        error.message,
        `Failed to send message ${wrong.id} to topic ${topic.name} via ${error.brokerType}`
      )
      assert.isFalse(error.retryable)
      yield* send(order("right"), topic)
      yield* probe.awaits(1)
      assert.deepStrictEqual(ids(probe), ["right"])
    })
  },
  {
    title: "messages of one key arrive in the order in which they were sent",
    needs: "partitions",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const probe = yield* consume(topic)
      const { send } = yield* producer
      const sent = Array.from({ length: 50 }, (_, index) => `${index}`)
      yield* Effect.forEach(sent, (id) => send(order(id), topic, "one"), { concurrency: "unbounded", discard: true })
      yield* probe.awaits(50)
      assert.deepStrictEqual(ids(probe), sent)
    })
  },
  {
    title: "MSG-05 each group gets every message; a failure of one group is no concern of the other",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const fails = () => Effect.fail(new Refused({ detail: "no" }))
      const one = yield* consume(topic, undefined, { naming: "group" })
      const other = yield* consume(topic, fails, { naming: "group" })
      const { send } = yield* producer
      const sent = Array.from({ length: 10 }, (_, index) => `${index}`)
      yield* Effect.forEach(sent, (id) => send(order(id), topic), { discard: true })
      yield* one.awaits(10)
      yield* eventually(() => assert.strictEqual(other.told.length, 10))
      assert.deepStrictEqual([ids(one), ids(other), one.told], [sent, sent, []])
    })
  },
  {
    title: "MSG-14 as many handlers of a consumer run at once as `concurrency` says, and no more",
    run: Effect.gen(function* () {
      const topic = Topic.json(unique("wide"), Order)
      const broker = yield* MessageBroker
      yield* broker.declareTopics([{ name: topic.name, partitions: 6 }])
      let [running, most] = [0, 0]
      const probe = yield* consume(
        topic,
        () =>
          Effect.gen(function* () {
            most = Math.max(most, ++running)
            yield* Effect.sleep("300 millis")
            running--
          }),
        { concurrency: 3 }
      )
      const { send } = yield* producer
      const sent = Array.from({ length: 24 }, (_, index) => `${index}`)
      yield* Effect.forEach(sent, (id) => send(order(id), topic, id), { concurrency: "unbounded", discard: true })
      yield* probe.awaits(24)
      assert.strictEqual(most, 3)
    })
  },
  {
    title:
      "MSG-05 a consumer of two topics gets the messages of both, each read as its own topic says, also when they are retried",
    run: Effect.gen(function* () {
      const one = yield* orders
      const two = Topic.json((yield* orders).name, Schema.Struct({ id: Schema.String, cents: Schema.NumberFromString }))
      const fails = ({ attempt }: Message.ReceivedMessage<Order>) =>
        attempt === 1 ? Effect.fail(new Away({ detail: "away" })) : Effect.void
      const probe = yield* consume([one, two], fails, { retry: quickly })
      const { send } = yield* producer
      yield* send(order("1", 7), one)
      yield* send(order("2", 8), two)
      yield* probe.awaits(4)
      const got = probe.calls.map(({ message }) => [message.payload, message.topic.name])
      const once = [
        [order("1", 7), one.name],
        [order("2", 8), two.name]
      ]
      assert.sameDeepMembers(got, [...once, ...once])
    })
  },
  {
    title: "a message that its topic cannot read is dead-lettered with its bytes; the handler never sees it",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const probe = yield* consume(topic)
      const { send } = yield* producer
      yield* send("no order", asTexts(topic))
      yield* send(order("next"), topic)
      const { of } = yield* DeadLetters
      yield* probe.awaits(1)
      assert.deepStrictEqual(ids(probe), ["next"])
      yield* eventually(() => assert.deepStrictEqual(probe.told, [topic.name]))
      const letters = yield* of(topic.name)
      assert.deepStrictEqual(
        letters.map(({ body }) => new TextDecoder().decode(body ?? undefined)),
        ["no order"]
      )
      assert.deepInclude(letters[0]!.headers, { "original-topic": topic.name, "exception-class": "DecodeFailure" })
    })
  },
  {
    title: "MSG-25 a topic that exists is left alone, and declared again without an error",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const probe = yield* consume(topic)
      const { send } = yield* producer
      yield* send(order("before"), topic)
      const { declareTopics } = yield* MessageBroker
      const fresh = Topic.named(topic, unique("fresh"))
      yield* declareTopics([
        { name: topic.name, partitions: 1 },
        { name: fresh.name, retentionMillis: 3_600_000 }
      ])
      yield* send(order("after"), topic)
      yield* probe.awaits(2)
      assert.deepStrictEqual(ids(probe), ["before", "after"])
    })
  },
  {
    title: "MSG-47 the broker says that it is up",
    run: Effect.gen(function* () {
      const { health } = yield* MessageBroker
      const answer = yield* health
      assert.strictEqual(answer.status, "UP", JSON.stringify(answer))
      assert.isFalse("error" in answer)
    })
  }
]
