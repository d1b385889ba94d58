/** Ruling 76 on a real Kafka: a node whose clock is two hours ahead publishes, in order, with a time that the topic accepts. */
import { assert, it, vi } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import { Effect, Layer, Logger } from "effect"

const hour = 3_600_000

KafkaSuite.shared("a clock that is ahead", (brokers) => {
  it.live("ruling 76: records get a time that the topic accepts, in order, and the log says so once a step", () => {
    const lines: Array<string> = []
    const topic = `ahead-${Math.random().toString(36).slice(2)}`
    const record = (value: string) => ({ topic, partition: 0, key: null, value: Buffer.from(value) })
    const values = Array.from({ length: 50 }, (_, i) => `v${i}`)
    return Effect.gen(function* () {
      const broker = yield* Broker.Broker
      const admin = yield* broker.admin
      const config = new Map([["message.timestamp.after.max.ms", String(hour)]])
      yield* admin.createTopics([{ topic, partitions: 1, config }])
      const producer = yield* broker.producer()
      const realNow = Date.now
      const ahead = vi.spyOn(Date, "now").mockImplementation(() => realNow() + 2 * hour)
      yield* Effect.addFinalizer(() => Effect.sync(() => ahead.mockRestore()))
      const sent = yield* producer.sendAll(values.map(record))
      assert.deepStrictEqual(
        sent.map(({ offset }) => offset),
        values.map((_, i) => BigInt(i))
      )
      // A time that the record came with is the caller's, and stays refused.
      const refused = yield* Effect.flip(producer.send({ ...record("own"), timestamp: Date.now() }))
      assert.deepInclude(refused, { _tag: "RecordRejected", field: "timestamp" })
      ahead.mockRestore()
      const [end] = yield* admin.topicOffsets(topic)
      assert.strictEqual(end?.logEnd, 50n)
      const [atLeast] = yield* admin.offsetsForTimestamp(topic, realNow() + hour + 60_000)
      assert.strictEqual(atLeast?.offset, 50n, "no record is more than an hour ahead")
      assert.strictEqual(lines.filter((line) => line.includes("refuses the time of this node's clock")).length, 1)
    }).pipe(
      Effect.scoped,
      Effect.provide(
        KafkaJs.layer({ brokers }).pipe(
          Layer.provideMerge(Logger.layer([Logger.make(({ message }) => void lines.push([message].flat().join(" ")))]))
        )
      )
    )
  })
})
