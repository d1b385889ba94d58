/** Outcomes: publishing records. */
import { Broker, Partitioner } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import {
  admin,
  assertTag,
  eventuallyTrue,
  failure,
  type Outcome,
  producer,
  record,
  texts,
  topic,
  unique,
  utf8
} from "./harness.ts"
import { join } from "./probe.ts"

export const publishing: ReadonlyArray<Outcome> = [
  {
    title: "send returns the position of the record",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const { send } = yield* producer
      assert.deepStrictEqual(yield* send(record(name, "a", { partition: 1 })), {
        topic: name,
        partition: 1,
        offset: 0n
      })
      assert.deepStrictEqual(yield* send(record(name, "b", { partition: 1 })), {
        topic: name,
        partition: 1,
        offset: 1n
      })
    })
  },
  {
    title: "the murmur2 hash of a key chooses its partition, as in every Kafka client",
    run: Effect.gen(function* () {
      const name = yield* topic(7)
      const { sendAll } = yield* producer
      const keys = [...texts("key", 40), "", "ä€"].map(utf8)
      const sent = yield* sendAll(keys.map((key) => ({ topic: name, key, value: null })))
      assert.deepStrictEqual(
        sent.map((one) => one.partition),
        keys.map((key) => Partitioner.partitionFor(key, 7))
      )
    })
  },
  {
    title: "records without a key spread over the partitions",
    run: Effect.gen(function* () {
      const name = yield* topic(3)
      const { send } = yield* producer
      const sent = yield* Effect.forEach(texts("v", 60), (value) =>
        send({ topic: name, key: null, value: utf8(value) })
      )
      assert.deepStrictEqual([...new Set(sent.map((one) => one.partition))].sort(), [0, 1, 2])
    })
  },
  {
    title:
      "a time beyond the topic's bounds is RecordRejected with field timestamp, or replaced where the record allows it, in order",
    run: Effect.gen(function* () {
      const hour = 3_600_000
      const within = (...keys: ReadonlyArray<string>) => topic(1, new Map(keys.map((key) => [key, String(hour)])))
      const name = yield* Effect.catch(
        within("message.timestamp.before.max.ms", "message.timestamp.after.max.ms"),
        // Kafka before 3.6 has one key for both.
        () => within("message.timestamp.difference.max.ms")
      )
      const { send } = yield* producer
      const started = (yield* Clock.currentTimeMillis) + 10 * hour
      const records = [
        record(name, "now"),
        record(name, "late", { timestamp: started, replaceTimestamp: true }),
        record(name, "refused", { timestamp: started }),
        record(name, "old", { timestamp: started - 20 * hour, replaceTimestamp: true }),
        record(name, "last")
      ]
      const answers = yield* Effect.forEach(records, (one) => Effect.result(send(one)), { concurrency: "unbounded" })
      const refused = answers[2]!
      assert.strictEqual(refused._tag, "Failure")
      if (refused._tag === "Failure") {
        assertTag(refused.failure, "RecordRejected")
        if (refused.failure._tag === "RecordRejected") assert.strictEqual(refused.failure.field, "timestamp")
      }
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* eventuallyTrue(() => assert.deepStrictEqual(probe.values, ["now", "late", "old", "last"]))
      for (const { timestamp } of probe.records) assert.isBelow(Math.abs(timestamp - (started - 10 * hour)), hour)
    })
  },
  {
    title: "an explicit partition overrides the key",
    run: Effect.gen(function* () {
      const name = yield* topic(4)
      const { sendAll } = yield* producer
      const key = utf8("some key")
      const sent = yield* sendAll([0, 1, 2, 3].map((partition) => ({ topic: name, key, value: null, partition })))
      assert.deepStrictEqual(
        sent.map((one) => one.partition),
        [0, 1, 2, 3]
      )
    })
  },
  {
    title: "concurrent sends are all acknowledged, and keep the order of their calls per partition",
    run: Effect.gen(function* () {
      const name = yield* topic(3)
      const { send } = yield* producer
      const sent = yield* Effect.forEach(
        texts("v", 600),
        (value, index) => send(record(name, value, { partition: index % 3 })),
        { concurrency: "unbounded" }
      )
      for (const partition of [0, 1, 2]) {
        assert.deepStrictEqual(
          sent.filter((one) => one.partition === partition).map((one) => one.offset),
          Array.from({ length: 200 }, (_, index) => BigInt(index))
        )
      }
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(600)
      assert.strictEqual(new Set(probe.values).size, 600)
    })
  },
  {
    title: "only the record that is too large fails",
    run: Effect.gen(function* () {
      const name = yield* topic(1, new Map([["max.message.bytes", "2000"]]))
      const { send } = yield* producer
      const [large, small] = yield* Effect.all(
        [failure(send(record(name, "x".repeat(5000)))), send(record(name, "small"))],
        { concurrency: "unbounded" }
      )
      assertTag(large, "RecordTooLarge")
      if (large._tag === "RecordTooLarge") assert.strictEqual(large.topic, name)
      assert.strictEqual(small.topic, name)
    })
  },
  {
    title:
      "a record that is too large as it is fits where its codec makes it small enough; the producer's codec is that of records without one",
    run: Effect.gen(function* () {
      const name = yield* topic(1, new Map([["max.message.bytes", "2000"]]))
      const value = "x".repeat(5_000)
      const plain = yield* producer
      assertTag(yield* failure(plain.send(record(name, value))), "RecordTooLarge")
      yield* plain.send(record(name, value, { compression: "gzip" }))
      const compressing = yield* Effect.flatMap(Broker.Broker, (broker) => broker.producer({ compression: "gzip" }))
      yield* compressing.send(record(name, value))
      assertTag(yield* failure(compressing.send(record(name, value, { compression: "none" }))), "RecordTooLarge")
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(2)
      assert.deepStrictEqual(probe.values, [value, value])
    })
  },
  {
    title: "many small records are not too large together",
    run: Effect.gen(function* () {
      const name = yield* topic(1, new Map([["max.message.bytes", "2000"]]))
      const { send } = yield* producer
      const sent = yield* Effect.forEach(texts("v", 30), (value) => send(record(name, value.padEnd(500))), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        sent.map((one) => one.offset),
        Array.from({ length: 30 }, (_, index) => BigInt(index))
      )
    })
  },
  {
    title: "a topic that does not exist is UnknownTopic and is not created; its neighbours succeed",
    run: Effect.gen(function* () {
      const [known, unknown] = [yield* topic(), unique("topic")]
      const { send } = yield* producer
      const [error, sent] = yield* Effect.all(
        [failure(send({ topic: unknown, key: null, value: utf8("a") })), send(record(known, "b"))],
        { concurrency: "unbounded" }
      )
      assertTag(error, "UnknownTopic")
      if (error._tag === "UnknownTopic") assert.strictEqual(error.topic, unknown)
      assert.strictEqual(sent.topic, known)
      const administrator = yield* admin
      assert.notInclude(yield* administrator.listTopics, unknown)
    })
  },
  {
    title: "an illegal topic name is InvalidTopic",
    run: Effect.gen(function* () {
      const { send } = yield* producer
      assertTag(yield* failure(send({ topic: "not legal!", key: null, value: null })), "InvalidTopic")
    })
  },
  {
    title: "a partition that does not exist is refused",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const { send } = yield* producer
      assertTag(yield* failure(send(record(name, "a", { partition: 2 }))), "RecordRejected", "UnknownTopic")
    })
  },
  {
    title: "a producer without idempotence publishes too",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const broker = yield* Broker.Broker
      const plain = yield* broker.producer({ idempotent: false, acks: "leader" })
      assert.strictEqual((yield* plain.send(record(name, "a"))).offset, 0n)
    })
  },
  {
    title: "closing a producer sends the records that wait",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const broker = yield* Broker.Broker
      yield* Effect.scoped(
        Effect.gen(function* () {
          const lingering = yield* broker.producer({ linger: "500 millis" })
          yield* Effect.forkDetach(Effect.ignore(lingering.send(record(name, "a"))), { startImmediately: true })
        })
      )
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(1)
    })
  },
  {
    title: "a record larger than maxBatchBytes travels alone, and the order stays",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const broker = yield* Broker.Broker
      const { send } = yield* broker.producer({ maxBatchBytes: 1000, maxBatchRecords: 3 })
      const values = [...texts("a", 8), "x".repeat(5000), ...texts("b", 8)]
      const sent = yield* Effect.forEach(values, (value) => send(record(name, value)), { concurrency: "unbounded" })
      assert.deepStrictEqual(
        sent.map((one) => one.offset),
        values.map((_, index) => BigInt(index))
      )
    })
  }
]
