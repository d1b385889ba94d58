/** Logs with holes, control records, new partitions, a new life, or a start that moves: positions stay right, and what is gone is counted. */
import { assert } from "@effect/vitest"
import { Binding, Broker, RetryPolicy, Serde } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import { valueOf } from "../observability/series.ts"
import * as Bus from "./bus.ts"

/** A binding on a topic and in a group of the same name. */
const reader = (name: string) => {
  const handled: Array<string> = []
  const made = Binding.make(name, {
    topic: name,
    groupId: name,
    value: Serde.nullable(Serde.string),
    maxPartitionFetchBytes: 200,
    retry: RetryPolicy.blocking(),
    handler: ({ value }) => Effect.sync(() => handled.push(value ?? "gone"))
  })
  return { made, handled }
}

/** The metric says so, too, as soon as the consumer has heard of the end. */
const shownLagIsZero = (topic: string, partitions: number) =>
  Bus.until(
    `eventbus.consumer.lag of ${topic} is 0`,
    Effect.map(
      Effect.forEach(Array.from({ length: partitions }).keys(), (partition) =>
        valueOf("eventbus.consumer.lag", { topic, partition: String(partition) })
      ),
      (lags) => lags.every((lag) => lag === 0)
    )
  )

const texts = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => String(from + index))

KafkaSuite.shared("logs", (bootstrap) => {
  Bus.story(
    bootstrap,
    "OFF-06 OBS-08 aborted batches and trailing markers: the aborted are not seen, lag reaches exactly 0, and a restart finds nothing to do",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("aborted")
        yield* Bus.createTopic(name, 2)
        const producer = yield* (yield* Broker.Broker).transactionalProducer({ transactionalId: name })
        const write = (from: number, to: number, end: "commit" | "abort") =>
          producer
            .transaction((transaction) =>
              Effect.andThen(
                transaction.sendAll(Bus.numbered(name, 2, to - from, from)),
                end === "commit" ? Effect.void : Effect.fail("abort" as const)
              )
            )
            .pipe(Effect.catch((error) => (error === "abort" ? Effect.void : Effect.fail(error))))
        yield* write(0, 10, "abort")
        yield* write(10, 20, "commit")
        yield* write(20, 30, "abort")
        const { made, handled } = reader(name)
        const app = yield* Bus.start(made)
        yield* Bus.lagIsZero(name, name)
        assert.deepStrictEqual([...handled].sort(), texts(10, 20))
        // Nothing but control records and aborted ones behind the position.
        yield* write(30, 40, "abort")
        yield* Bus.lagIsZero(name, name)
        yield* shownLagIsZero(name, 2)
        yield* app.close
        const again = yield* Bus.start(made)
        yield* write(40, 50, "commit")
        yield* Bus.lagIsZero(name, name)
        yield* again.close
        assert.deepStrictEqual([...handled].sort(), [...texts(10, 20), ...texts(40, 50)])
        assert.deepStrictEqual(again.of("RecordsGone"), [])
      })
  )

  Bus.story(
    bootstrap,
    "REB-12 a topic that is extended at run time: the new partitions are read from their beginning",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("extended")
        yield* Bus.createTopic(name, 2)
        yield* Bus.publish(Bus.numbered(name, 2, 20))
        const { made, handled } = reader(name)
        const app = yield* Bus.on({ brokers: bootstrap, metadataMaxAge: "1 second" }, Bus.start(made))
        yield* Bus.lagIsZero(name, name)
        yield* Bus.withAdmin((admin) => admin.createPartitions(name, 5))
        yield* Bus.publish(Bus.numbered(name, 5, 50, 20))
        yield* Bus.lagIsZero(name, name)
        assert.deepStrictEqual([...handled].sort(), texts(0, 70).sort())
        assert.deepStrictEqual(app.of("PartitionReleased"), [])
        assert.strictEqual(app.of("PartitionAssigned").length, 5)
      })
  )

  Bus.story(
    bootstrap,
    "OFF-10 a topic that is deleted and made again at run time: every record of the new one is read, without a restart",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("recreated")
        yield* Bus.createTopic(name, 2)
        yield* Bus.publish(Bus.numbered(name, 2, 60))
        const { made, handled } = reader(name)
        const app = yield* Bus.start(made)
        yield* Bus.lagIsZero(name, name)
        yield* Bus.withAdmin((admin) => admin.deleteTopics([name]))
        yield* Bus.until("it has noticed", () => app.of("PartitionLost").length === 2)
        yield* Bus.createTopic(name, 2)
        yield* Bus.publish(Bus.numbered(name, 2, 200, 100))
        yield* Bus.until("the new records are handled", () => texts(100, 300).every((each) => handled.includes(each)), {
          otherwise: () => ({ handled: handled.slice(60).join(" "), log: app.log })
        })
        yield* Bus.lagIsZero(name, name)
        assert.deepStrictEqual([...handled].sort(), [...texts(0, 60), ...texts(100, 300)].sort())
      })
  )

  for (const isRemade of [false, true]) {
    Bus.story(
      bootstrap,
      `a retry topic is deleted${isRemade ? " and made again" : ""} while records wait in it: event and log say how many went with it`,
      () =>
        Effect.gen(function* () {
          const name = Bus.fresh("waiting")
          const retryTopic = `${name}.retry-1`
          for (const topic of [name, retryTopic]) yield* Bus.createTopic(topic, 2)
          const made = Binding.make(name, {
            topic: name,
            groupId: name,
            value: Serde.nullable(Serde.string),
            retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 hour"] }),
            handler: () => Effect.die("no")
          })
          const app = yield* Bus.start(made)
          yield* Bus.publish(Bus.numbered(name, 2, 20))
          yield* Bus.until("all are copied", () => app.of("Settled").length === 20)
          // The ends of paused logs are known as of the last poll.
          yield* Bus.until(
            "the lag shows them",
            Effect.map(
              app.connector.snapshot(name),
              ({ partitions }) =>
                partitions.reduce((sum, { topic, lag }) => sum + (topic === retryTopic ? lag : 0n), 0n) === 20n
            )
          )
          yield* Bus.withAdmin((admin) => admin.deleteTopics([retryTopic]))
          if (isRemade) yield* Bus.createTopic(retryTopic, 2)
          const gone = () => app.of("RecordsGone").map((event) => ({ ...event, gone: Number(event.gone) }))
          yield* Bus.until("it is told", () => gone().reduce((sum, event) => sum + event.gone, 0) === 20, {
            otherwise: () => ({ gone: gone(), log: app.log })
          })
          for (const { topic, cause } of gone()) assert.deepStrictEqual([topic, cause], [retryTopic, "topic-deleted"])
          assert.lengthOf(
            app.log.filter(({ message }) => message.includes("went with it: offsets 0 to ")),
            gone().length
          )
        })
    )
  }

  Bus.story(
    bootstrap,
    "OFF-08 REB-09 records deleted under a paused binding: it says how many are gone, once, and goes on behind them",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("overtaken")
        yield* Bus.createTopic(name)
        yield* Bus.publish(Bus.numbered(name, 1, 10))
        const { made, handled } = reader(name)
        const app = yield* Bus.start(made)
        yield* Bus.lagIsZero(name, name)
        yield* app.connector.pause(name)
        // In batches, since a fetch that is under way may still bring the first of them.
        for (let from = 10; from < 100; from += 10) yield* Bus.publish(Bus.numbered(name, 1, 10, from))
        yield* Bus.withAdmin((admin) => admin.deleteRecords(name, [{ partition: 0, before: 70n }]))
        yield* app.connector.resume(name)
        yield* Bus.lagIsZero(name, name)
        const gone = app.of("RecordsGone").map(({ from, to, gone, cause }) => ({ from, to, gone, cause }))
        const seenBefore = handled.length - 40
        // Records that were fetched before the pause are still handled.
        assert.deepStrictEqual(gone, [
          { from: BigInt(seenBefore + 10), to: 70n, gone: BigInt(60 - seenBefore), cause: "retention" }
        ])
        assert.deepStrictEqual(handled.slice(-30), texts(70, 100))
        assert.strictEqual(app.log.filter(({ message }) => message.includes("lost to retention: ")).length, 1)
        yield* app.close
        const again = yield* Bus.start(made)
        yield* Bus.publish(Bus.numbered(name, 1, 1, 100))
        yield* Bus.lagIsZero(name, name)
        assert.deepStrictEqual(again.of("RecordsGone"), [])
      })
  )
})

KafkaSuite.own("a log that is compacted", { config: { "log.cleaner.backoff.ms": "200" } }, (it) => {
  it.effect(
    "OFF-06 OBS-08 a compacted topic: each remaining record is read once, the last tombstone too, and lag reaches exactly 0",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const story = Effect.gen(function* () {
          const name = Bus.fresh("compacted")
          const records = (from: number, to: number) =>
            texts(from, to).map((value) => ({
              topic: name,
              key: Bus.bytes(`k${Number(value) % 5}`),
              value: Number(value) % 5 === 4 ? null : Bus.bytes(value)
            }))
          yield* Bus.createTopic(name, 1, {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "segment.ms": "500",
            "max.compaction.lag.ms": "500"
          })
          yield* Bus.publish(records(0, 500))
          // The cleaner leaves the active segment alone; a record after `segment.ms` closes it.
          let next = 500
          yield* Bus.until(
            "the log has holes",
            Effect.gen(function* () {
              yield* Bus.publish(records(next, ++next))
              return (yield* Bus.readAll(name)).length < next - 100
            })
          )
          const left = yield* Bus.readAll(name)
          const { made, handled } = reader(name)
          const app = yield* Bus.start(made)
          yield* Bus.lagIsZero(name, name)
          yield* shownLagIsZero(name, 1)
          assert.isAtMost(handled.length, left.length)
          assert.deepStrictEqual([...handled].slice(-1), [next % 5 === 0 ? "gone" : String(next - 1)])
          assert.strictEqual(
            new Set(handled.filter((value) => value !== "gone")).size,
            handled.filter((value) => value !== "gone").length
          )
          assert.deepStrictEqual(app.of("RecordsGone"), [])
        })
        yield* Bus.on({ brokers: cluster.bootstrap }, story)
      }),
    240_000
  )
})
