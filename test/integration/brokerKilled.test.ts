/**
 * Three brokers under load, one of them killed with -9 and started again later, then one suspended: nothing is lost, nothing is committed that was not
 * handled, and the partitions of the other brokers go on.
 */
import { assert } from "@effect/vitest"
import { Binding, Broker, RetryPolicy, Serde, TopicName } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect, Fiber } from "effect"
import * as Transport from "../transport.ts"
import * as Bus from "./bus.ts"
import { frozenNode } from "./frozenNode.ts"
import type { Handled } from "./journal.ts"
import * as Journal from "./journal.ts"

/** The other brokers replace one that is silent for so long. Kafka's default is 9 seconds. */
const config = { "broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "1000" }

/** How long a broker is suspended. */
const frozenSeconds = Number(process.env.FROZEN_SECONDS ?? 12)

const partitions = 6
const count = 6_000

/** A binding in a group of its own on the topic, and what it handled. */
const reader = (topic: string, ackMode: "MANUAL" | "MANUAL_IMMEDIATE") => {
  const handled: Array<Handled> = []
  const name = `${topic}-${ackMode}`
  const binding = Binding.make(name, {
    topic,
    groupId: name,
    naming: TopicName.perGroup,
    ackMode,
    ...Transport.membership({}),
    value: Serde.string,
    retry: RetryPolicy.blocking(),
    handler: ({ record: { partition, offset }, value }) =>
      Effect.andThen(
        Effect.yieldNow,
        Effect.sync(() => handled.push({ _tag: "Done", partition, offset: Number(offset), value }))
      )
  })
  return { name, binding, handled }
}

/** Publishes evenly over about 15 seconds, with acks from all replicas that are in sync. */
const load = (topic: string, onAcknowledged: (published: number) => void) =>
  Effect.gen(function* () {
    const producer = yield* (yield* Broker.Broker).producer({ acks: "all" })
    const batch = 100
    for (let from = 0; from < count; from += batch) {
      yield* Effect.all([producer.sendAll(Bus.numbered(topic, partitions, batch, from)), Effect.sleep("250 millis")], {
        concurrency: "unbounded"
      })
      onAcknowledged(from + batch)
    }
  })

KafkaSuite.own(
  "three brokers",
  { brokers: 3, config: process.env.FROZEN_SECONDS === undefined ? config : {} },
  (it) => {
    it.effect(
      "OFF-08 NFR-01 MANUAL and MANUAL_IMMEDIATE: no record is lost or committed unhandled, and only records in flight are repeated",
      () =>
        Effect.gen(function* () {
          const cluster = yield* RealKafka.RealKafka
          const story = Effect.gen(function* () {
            const topic = Bus.fresh("broker-killed")
            yield* Bus.createTopic(topic, partitions)
            const readers = [reader(topic, "MANUAL"), reader(topic, "MANUAL_IMMEDIATE")]
            const app = yield* Bus.start(...readers.map(({ binding }) => binding))
            let published = 0
            const producing = yield* Effect.forkChild(load(topic, (acknowledged) => (published = acknowledged)))
            const check = Effect.gen(function* () {
              for (const { name, handled } of readers) {
                const committed = yield* Bus.committed(name, topic)
                assert.deepStrictEqual(Journal.committedUnhandled(committed, handled), [])
              }
            })
            const reached = (some: number) =>
              Bus.until(
                `${some} records are published, and their readers close behind`,
                () => published >= some && readers.every(({ handled }) => handled.length >= some / 2),
                {
                  within: "60 seconds",
                  otherwise: () => ({ published, handled: readers.map((each) => each.handled.length) })
                }
              )
            yield* reached(count / 5)
            yield* cluster.kill(2)
            yield* reached((count * 3) / 5)
            yield* check
            yield* cluster.restart(2)
            yield* Fiber.join(producing)
            for (const { name } of readers) yield* Bus.lagIsZero(name, topic, "60 seconds")
            yield* check

            const log = yield* Bus.readAll(topic)
            // A resend after an unknown outcome is dropped by the broker: the producer is idempotent.
            assert.strictEqual(log.length, count)
            for (const { name, handled } of readers) {
              assert.strictEqual(new Set(handled.map(({ value }) => value)).size, count)
              const cutOff = app.of("PartitionLost").filter((event) => event.binding === name).length
              const crashed = app.of("SessionCrashed").filter((event) => event.binding === name).length
              // In MANUAL_IMMEDIATE one record of a partition is in flight, and nothing else is uncommitted.
              const allowed = name.endsWith("MANUAL") ? handled.length : cutOff + crashed * partitions
              assert.isAtMost(handled.length - count, allowed, `${name}: ${Journal.repeated(handled)}`)
              if (cutOff + crashed === 0) assert.strictEqual(handled.length, count, name)
            }
          })
          yield* Bus.on({ brokers: cluster.bootstrap }, story)
        }),
      240_000
    )

    it.effect(
      "CLN-06 C52 ruling 82 while a broker is silent, which coordinates the group, the others' partitions go on, and a binding starts within seconds",
      () =>
        Effect.gen(function* () {
          const cluster = yield* RealKafka.RealKafka
          const { started, manual, immediate, log } = yield* Bus.on(
            { brokers: cluster.bootstrap },
            frozenNode(cluster, frozenSeconds * 1_000)
          )
          if (process.env.FROZEN_SECONDS !== undefined) console.log({ started, manual, immediate })
          assert.isAtMost(started, 7_000)
          assert.isAtMost(manual, 5_000)
          // The session. Beside other tests the broker takes longer to replace the coordinator.
          assert.isAtMost(immediate, process.env.FROZEN_SECONDS === undefined ? 12_000 : 10_000)
          assert.isTrue(
            log.some(({ message }) => /^Broker 127\.0\.0\.1:\d+ has not answered for 1\.\d s/.test(message))
          )
        }),
      240_000
    )
  }
)
