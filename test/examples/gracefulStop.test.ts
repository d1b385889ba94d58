import { assert } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import { Effect } from "effect"
import { start } from "./program.ts"

const arrive = Effect.fnUntraced(function* (orders: ReadonlyArray<{ readonly id: string; readonly amount: number }>) {
  const broker = yield* Broker.Broker
  const admin = yield* broker.admin
  yield* admin.createTopics([{ topic: "orders", partitions: 1 }])
  const producer = yield* broker.producer()
  const encoder = new TextEncoder()
  yield* producer.sendAll(
    orders.map((order) => ({ topic: "orders", key: null, value: encoder.encode(JSON.stringify(order)) }))
  )
})

const committed = Effect.gen(function* () {
  const broker = yield* Broker.Broker
  const admin = yield* broker.admin
  const offsets = yield* admin.committedOffsets("billing", ["orders"])
  return offsets.map(({ offset }) => offset)
})

/** The output of `promises.ts` before SIGTERM. */
const charged = ["ready", "charging declined", "charging hiccup", "charged hiccup", "charging slow"]

KafkaSuite.own("a program that gets SIGTERM", {}, (it) => {
  it.effect(
    "LIF-15 LIF-12: finishes the running order, commits it, starts no other; after a restart nothing is repeated",
    () =>
      Effect.gen(function* () {
        const { bootstrap } = yield* RealKafka.RealKafka
        const env = { KAFKA_BROKERS: bootstrap.join(",") }
        yield* Effect.gen(function* () {
          yield* arrive([
            { id: "quick", amount: 20 },
            { id: "slow", amount: 5000 },
            { id: "next", amount: 20 }
          ])
          const first = yield* start("handler.ts", env)
          yield* first.writes("charging slow")
          yield* first.signal("SIGTERM")
          assert.strictEqual(yield* Effect.timeout(first.exit, "15 seconds"), 130)
          assert.deepStrictEqual(first.lines(), ["charging quick", "charged quick", "charging slow", "charged slow"])
          assert.deepStrictEqual(yield* committed, [2n])

          const second = yield* start("handler.ts", env)
          yield* second.writes("charged next")
          yield* second.signal("SIGTERM")
          assert.strictEqual(yield* second.exit, 130)
          assert.deepStrictEqual(second.lines(), ["charging next", "charged next"])
          assert.deepStrictEqual(yield* committed, [3n])
        }).pipe(Effect.provide(KafkaJs.layer({ brokers: bootstrap })))
      }),
    150_000
  )

  it.effect(
    "RCH-06 RCH-04: a program without Effect handles, retries in a topic, finishes the running record at SIGTERM, and ends by it",
    () =>
      Effect.gen(function* () {
        const { bootstrap } = yield* RealKafka.RealKafka
        yield* Effect.gen(function* () {
          const broker = yield* Broker.Broker
          const admin = yield* broker.admin
          yield* admin.createTopics([{ topic: "payments", partitions: 1 }])
          const program = yield* start("promises.ts", { KAFKA_BROKERS: bootstrap.join(",") })
          yield* program.writes("charged hiccup")
          yield* program.writes("charging slow")
          yield* program.signal("SIGTERM")
          // A process that a signal ends has no exit code.
          assert.strictEqual(yield* Effect.timeout(program.exit, "15 seconds"), null)
          const written = program.lines().filter((line) => /^(ready|charg)/.test(line))
          assert.deepStrictEqual(new Set(written), new Set([...charged, "charged slow"]))
          assert.match(program.output(), /payments\.retry-1/)
          const [offset] = yield* admin.committedOffsets("accounting", ["payments"])
          assert.strictEqual(offset?.offset, 3n)
          const [letters] = yield* admin.topicOffsets("payments.DLT")
          assert.strictEqual(letters?.logEnd, 1n)
        }).pipe(Effect.provide(KafkaJs.layer({ brokers: bootstrap })))
      }),
    150_000
  )
})
