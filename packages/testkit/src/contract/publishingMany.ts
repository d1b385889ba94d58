import type { ConsumerRecord } from "@eventbus/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { assert } from "vitest"
import { assertTag, failure, type Outcome, producer, quietTime, record, texts, topic, unique } from "./harness.ts"
import { join } from "./probe.ts"

export const publishingMany: ReadonlyArray<Outcome> = [
  {
    title: "sendAll returns positions in the order of its records, over several topics",
    run: Effect.gen(function* () {
      const [first, second] = [yield* topic(), yield* topic()]
      const { sendAll } = yield* producer
      const sent = yield* sendAll([record(first, "a"), record(second, "b"), record(first, "c")])
      assert.deepStrictEqual(sent, [
        { topic: first, partition: 0, offset: 0n },
        { topic: second, partition: 0, offset: 0n },
        { topic: first, partition: 0, offset: 1n }
      ])
      assert.deepStrictEqual(yield* sendAll([]), [])
    })
  },
  {
    title: "sendAll with a record that cannot be published fails with that failure, and publishes the others",
    run: Effect.gen(function* () {
      const name = yield* topic(1, new Map([["max.message.bytes", "2000"]]))
      const { sendAll } = yield* producer
      const error = yield* failure(
        sendAll([record(name, "a"), record(name, "x".repeat(5000)), record(unique("topic"), "b"), record(name, "c")])
      )
      assertTag(error, "RecordTooLarge")
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(2)
      assert.deepStrictEqual(probe.values, ["a", "c"])
    })
  },
  {
    title:
      "a record that no broker can take is RecordRejected at once, alone, and the records of the same call are written as they are",
    run: Effect.gen(function* () {
      const name = yield* topic(1)
      const { sendEach } = yield* producer
      const good = record(name, "good")
      const bad: ReadonlyArray<object> = [
        { topic: undefined },
        { topic: "" },
        { key: "text" },
        { value: "text" },
        { value: undefined },
        { value: new ArrayBuffer(4) },
        { timestamp: 1.5 },
        { timestamp: Number.NaN },
        { timestamp: -1 },
        { timestamp: new Date(0) },
        { partition: 0.5 },
        { compression: "LZ4" },
        { headers: { name: "text" } },
        { headers: [{ key: 5, value: null }] },
        { headers: [{ key: "name", value: "text" }] }
      ]
      const records = [good, ...bad.map((wrong) => ({ ...good, ...wrong })), ...unreadable(good), good]
      const answers = new Array<string | bigint>(records.length)
      yield* sendEach(records, (index, answer) => {
        answers[index] = Result.isSuccess(answer) ? answer.success.offset : answer.failure._tag
      })
      const refused = [...bad, ...unreadable(good)]
      assert.deepStrictEqual(answers, [0n, ...refused.map(() => "RecordRejected"), 1n])
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(2)
      assert.deepStrictEqual(probe.values, ["good", "good"])
    })
  },
  {
    title:
      "a topic name that is too long is InvalidTopic, alone, however long it is: a record for another new topic is written",
    run: Effect.gen(function* () {
      const name = yield* topic(1)
      const { sendEach } = yield* producer
      const answers = new Array<string | bigint>(3)
      const records = [250, 40_000].map((length) => record("x".repeat(length), "lost"))
      yield* sendEach([...records, record(name, "good")], (index, answer) => {
        answers[index] = Result.isSuccess(answer) ? answer.success.offset : answer.failure._tag
      })
      assert.deepStrictEqual(answers, ["InvalidTopic", "InvalidTopic", 0n])
    })
  },
  {
    title: "sendEach answers each record once, by its index: too large, unknown topic, stored",
    run: Effect.gen(function* () {
      const name = yield* topic(1, new Map([["max.message.bytes", "2000"]]))
      const { sendEach } = yield* producer
      const answers: Array<[number, string | bigint]> = []
      const records = [
        record(name, "a"),
        record(name, "x".repeat(5000)),
        record(unique("topic"), "b"),
        record(name, "c"),
        record(name, "d", { partition: 7 }),
        record(name, "e")
      ]
      yield* sendEach(records, (index, answer) =>
        answers.push([index, Result.isSuccess(answer) ? answer.success.offset : answer.failure._tag])
      )
      const byIndex = new Map(answers)
      assert.strictEqual(answers.length, records.length)
      assert.include(["RecordRejected", "UnknownTopic"], byIndex.get(4))
      byIndex.delete(4)
      assert.deepStrictEqual(
        [...byIndex].sort(([a], [b]) => a - b),
        [
          [0, 0n],
          [1, "RecordTooLarge"],
          [2, "UnknownTopic"],
          [3, 1n],
          [5, 2n]
        ]
      )
      yield* sendEach([], () => assert.fail("there is no record to answer for"))
    })
  },
  {
    title: "sendEach keeps the order per partition, also between calls and with send",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const { send, sendEach } = yield* producer
      const values = texts("v", 500)
      const part = (from: number, to: number) =>
        sendEach(
          values.slice(from, to).map((value, index) => record(name, value, { partition: (from + index) % 2 })),
          (_, answer) => assert.isTrue(Result.isSuccess(answer))
        )
      yield* Effect.all([part(0, 240), send(record(name, values[240]!, { partition: 0 })), part(241, 500)], {
        concurrency: "unbounded"
      })
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(500)
      const even = new Set(values.filter((_, index) => index % 2 === 0))
      assert.deepStrictEqual(
        probe.values.filter((value) => even.has(value ?? "")),
        [...even]
      )
      assert.deepStrictEqual(
        probe.values.filter((value) => !even.has(value ?? "")),
        values.filter((value) => !even.has(value))
      )
    })
  },
  {
    title: "sendEach answers a record before the last one is done, and none after it is interrupted",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const { sendEach } = yield* producer
      const [first, told] = [yield* Deferred.make<void>(), new Set<number>()]
      // The answer for the missing topic takes longer than the answer for the existing one.
      const sending = sendEach([record(unique("topic"), "a"), record(name, "b")], (index) => {
        told.add(index)
        if (index === 1) Deferred.doneUnsafe(first, Effect.void)
      })
      const fiber = yield* Effect.forkChild(sending, { startImmediately: true })
      yield* Deferred.await(first)
      yield* Fiber.interrupt(fiber)
      const before = told.size
      yield* quietTime
      assert.isTrue(told.has(1))
      assert.strictEqual(told.size, before)
    })
  }
]

/** Records that throw when they are read, at once or later. */
const unreadable = (good: ConsumerRecord.ProducerRecord): ReadonlyArray<ConsumerRecord.ProducerRecord> => {
  const { proxy: revoked, revoke } = Proxy.revocable(good, {})
  revoke()
  const throwingAt = (read: number) => {
    let reads = 0
    return Object.defineProperty({ ...good }, "value", {
      get: () => {
        if (++reads >= read) throw new Error("it cannot be read")
        return good.value
      }
    })
  }
  // Where types do not hold, there may be none.
  const absent = [undefined, null] as ReadonlyArray<unknown> as ReadonlyArray<ConsumerRecord.ProducerRecord>
  return [...absent, revoked, throwingAt(1), throwingAt(2)]
}
