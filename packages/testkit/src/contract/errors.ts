/** Outcomes: failures are reported, `retryable` is true to its name, and everything else goes on working. */
import { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import {
  admin,
  assertTag,
  eventually,
  failure,
  type Outcome,
  producer,
  publish,
  record,
  topic,
  unique,
  usable,
  utf8
} from "./harness.ts"
import { join } from "./probe.ts"

export const errors: ReadonlyArray<Outcome> = [
  {
    title: "UnknownTopic is retryable: the same producer publishes once the topic exists",
    run: Effect.gen(function* () {
      const name = unique("topic")
      const { send } = yield* producer
      const error = yield* failure(send({ topic: name, key: null, value: utf8("a") }))
      assertTag(error, "UnknownTopic")
      assert.isTrue(error.retryable)
      const administrator = yield* admin
      yield* administrator.createTopics([{ topic: name, partitions: 1 }])
      yield* usable(administrator, name, 1)
      const sent = yield* eventually(send({ topic: name, key: null, value: utf8("b") }))
      assert.strictEqual(sent.offset, 0n)
    })
  },
  {
    title: "an error that a retry cannot fix is not retryable",
    run: Effect.gen(function* () {
      const name = yield* topic(1, new Map([["max.message.bytes", "2000"]]))
      const { send } = yield* producer
      const administrator = yield* admin
      assert.isFalse((yield* failure(send(record(name, "x".repeat(5000))))).retryable)
      assert.isFalse((yield* failure(send({ topic: "not legal!", key: null, value: null }))).retryable)
      assert.isFalse((yield* failure(administrator.createTopics([{ topic: name, partitions: 1 }]))).retryable)
    })
  },
  {
    title:
      "ruling 84: a number beyond the protocol, NaN and {} among the options are refused with name, value and range",
    run: Effect.gen(function* () {
      const broker = yield* Broker.Broker
      const wrong = { linger: Number.NaN, maxBatchBytes: 2 ** 31, deliveryTimeout: {} }
      const error = yield* failure(broker.producer(wrong))
      if (error._tag !== "UnexpectedBrokerError") return assert.fail(error.message)
      assert.deepStrictEqual([error.code, error.retryable], ["INVALID_CONFIG", false])
      for (const part of ["linger: found NaN", "maxBatchBytes: found 2147483648", "deliveryTimeout: found {}"]) {
        assert.include(error.detail, part)
      }
      const session = yield* failure(
        broker.consumer({ groupId: unique("group"), topics: [], sessionTimeout: 2 ** 31, fetchMaxWait: -1 })
      )
      assert.match(session.message, /sessionTimeout: found 2147483648.*1 ms to 2147483647 ms; fetchMaxWait: found -1/)
      const reader = yield* failure(broker.reader({ maxPartitionFetchBytes: 0 }))
      assert.match(reader.message, /maxPartitionFetchBytes: found 0, .*1 to 2147483647/)
      const transactionalId = unique("id")
      const timeout = yield* failure(broker.transactionalProducer({ transactionalId, transactionTimeout: Infinity }))
      assert.include(timeout.message, "transactionTimeout: found Infinity")
    })
  },
  {
    title: "a producer goes on after records were refused",
    run: Effect.gen(function* () {
      const name = yield* topic(1, new Map([["max.message.bytes", "2000"]]))
      const { send } = yield* producer
      yield* failure(send(record(name, "x".repeat(5000))))
      yield* failure(send(record(unique("topic"), "nowhere")))
      assert.strictEqual((yield* send(record(name, "a"))).offset, 0n)
    })
  },
  {
    title: "a refused commit leaves the session unchanged",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      const probe = yield* join({ groupId, topics: [name] })
      yield* probe.owns(1)
      const { generation } = probe.own(name)
      const stale = { topic: name, partition: 0, generation: generation + 1000, offset: 5n }
      const error = yield* failure(probe.session.commit([stale]))
      assertTag(error, "StaleAssignment")
      assert.isFalse(error.retryable)
      yield* probe.commit(name, 0, 1n)
      yield* publish(name, ["a"])
      yield* probe.collects(1)
    })
  },
  {
    title: "an empty commit succeeds",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.owns(1)
      yield* probe.session.commit([])
    })
  },
  {
    title: "a commit after the session was closed is refused",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      const { probe, generation } = yield* Effect.scoped(
        Effect.gen(function* () {
          const probe = yield* join({ groupId, topics: [name] })
          yield* probe.owns(1)
          return { probe, generation: probe.own(name).generation }
        })
      )
      yield* failure(probe.session.commit([{ topic: name, partition: 0, generation, offset: 1n }]))
      const administrator = yield* admin
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [])
    })
  },
  {
    title: "pause, resume and seek after the session was closed do nothing",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const probe = yield* Effect.scoped(
        Effect.gen(function* () {
          const probe = yield* join({ groupId: unique("group"), topics: [name] })
          yield* probe.owns(1)
          return probe
        })
      )
      const at = { topic: name, partition: 0 }
      yield* probe.session.pause([at])
      yield* probe.session.resume([at])
      yield* probe.session.seek(at, 0n)
    })
  }
]
