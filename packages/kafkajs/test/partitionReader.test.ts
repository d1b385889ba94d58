/** The reader on a Kafka whose nodes die or answer nothing. */
import { assert } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import { Effect, type Scope } from "effect"

const partitions = [0, 1, 2]

/** A topic whose partitions are led by different nodes, with ten records in each. */
const filled = Effect.fnUntraced(function* (topic: string) {
  const broker = yield* Broker.Broker
  const admin = yield* broker.admin
  yield* admin.createTopics([{ topic, partitions: partitions.length, replicationFactor: 3 }])
  const { sendAll } = yield* broker.producer()
  const value = new TextEncoder().encode("v")
  yield* sendAll(
    partitions.flatMap((partition) => Array.from({ length: 10 }, () => ({ topic, partition, key: null, value })))
  )
})

/** The offsets that are read from a position of each partition, or the error. */
const readEach = (reader: Broker.Reader, topic: string, offset: bigint) =>
  Effect.forEach(
    partitions,
    (partition) =>
      reader.read({ topic, partition, offset }).pipe(
        Effect.map((found) => (found._tag === "Fetched" ? found.chunk.records.map((each) => Number(each.offset)) : [])),
        Effect.catch(({ _tag }) => Effect.succeed(_tag))
      ),
    { concurrency: "unbounded" }
  )

/**
 * Reads again after errors, so that a slow machine does not decide, and after empty answers: a new leader shows a record only once it knows that the other replicas have it,
 * which takes a moment.
 */
const untilAllAreRead = <E, R>(reads: Effect.Effect<ReadonlyArray<ReadonlyArray<number> | string>, E, R>) =>
  Effect.repeat(Effect.delay(reads, "100 millis"), {
    until: (all) => all.every((each) => typeof each !== "string" && each.length > 0),
    times: 50
  })

KafkaSuite.own("a reader on nodes that fail", { brokers: 3 }, (it) => {
  const story = <E>(effect: Effect.Effect<void, E, RealKafka.RealKafka | Broker.Broker | Scope.Scope>) =>
    Effect.flatMap(RealKafka.RealKafka, ({ bootstrap }) =>
      Effect.provideService(effect, Broker.Broker, KafkaJs.make({ brokers: bootstrap, requestTimeout: "5 seconds" }))
    )
  const from = (first: number) => Array.from({ length: 10 - first }, (_, index) => first + index)

  it.effect(
    "OPS-01 a read goes on at the next leader when its leader was killed",
    () =>
      Effect.gen(function* () {
        yield* filled("killed")
        const kafka = yield* RealKafka.RealKafka
        const reader = yield* (yield* Broker.Broker).reader()
        assert.deepStrictEqual(yield* untilAllAreRead(readEach(reader, "killed", 0n)), [from(0), from(0), from(0)])
        yield* Effect.acquireRelease(kafka.kill(2), () => Effect.orDie(kafka.restart(2)))
        // The cluster notices after six seconds; a read tries for about as long.
        const found = yield* untilAllAreRead(readEach(reader, "killed", 5n))
        assert.deepStrictEqual(found, [from(5), from(5), from(5)])
      }).pipe(Effect.scoped, story),
    120_000
  )

  it.effect(
    "OPS-01 a leader that does not answer ends the read with RequestTimedOut, and the others are read",
    () =>
      Effect.gen(function* () {
        yield* filled("frozen")
        const kafka = yield* RealKafka.RealKafka
        const reader = yield* (yield* Broker.Broker).reader()
        assert.deepStrictEqual(yield* untilAllAreRead(readEach(reader, "frozen", 0n)), [from(0), from(0), from(0)])
        yield* Effect.acquireRelease(kafka.freeze(3), () => kafka.thaw(3))
        const found = yield* readEach(reader, "frozen", 5n)
        assert.sameDeepMembers(found, [from(5), from(5), "RequestTimedOut"])
      }).pipe(Effect.scoped, story),
    60_000
  )
})
