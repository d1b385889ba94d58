/** Ruling 87: a relay waits for a missing topic, or creates it. No event uses up an attempt, and the events of other topics go on. */
import { assert, describe, it } from "@effect/vitest"
import { Broker, BrokerError } from "@eventbus/core"
import { Outbox, OutboxHealth, OutboxSchema } from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { MemoryBroker, VirtualClock } from "@eventbus/testkit"
import { Effect, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)

const write = (eventType: string, count: number) =>
  SqlClient.SqlClient.use((sql) =>
    sql.withTransaction(
      Outbox.writeAll(
        Array.from({ length: count }, (_, n) => ({
          eventType,
          eventId: `${eventType} ${n}`,
          aggregateType: eventType,
          aggregateId: `${n % 3}`,
          payload: n
        }))
      )
    )
  )

const states = SqlClient.SqlClient.use((sql) =>
  Effect.map(
    sql.unsafe<{ event_type: string; status: number; attempts: number }>(
      "SELECT event_type, status, attempts FROM outbox_event"
    ),
    (rows) =>
      new Set(rows.map((row) => `${row.event_type} ${["NEW", "DONE", "RETRY", "DEAD"][row.status]} ${row.attempts}`))
  )
)

const health = OutboxHealth.OutboxHealth.use((service) => service.check)

const idsIn = Effect.fnUntraced(function* (topic: string) {
  const memory = yield* MemoryBroker.MemoryBroker
  return (yield* memory.log(topic, 0)).map((record) => KafkaRelay.eventIdOf(record))
})

const shapes = {
  singleNode: (relay: KafkaRelay.KafkaRelayOptions) =>
    Outbox.singleNode({ workerCount: 2, maxAttempts: 3, retryPolicy: KafkaRelay.retryPolicy }).pipe(
      Layer.provide(KafkaRelay.layer(relay))
    ),
  multiNode: (relay: KafkaRelay.KafkaRelayOptions) =>
    Outbox.multiNode({ workerCount: 2, maxAttempts: 3, claimLocking: { lockTimeout: "1 minute" } }).pipe(
      Layer.provide(KafkaRelay.layer(relay))
    ),
  ordered: (relay: KafkaRelay.KafkaRelayOptions) => Outbox.ordered().pipe(Layer.provide(KafkaRelay.layer(relay))),
  orderedNodes: (relay: KafkaRelay.KafkaRelayOptions) =>
    Outbox.orderedNodes({ ...KafkaRelay.orderedSettings, maxAttempts: 3 }).pipe(Layer.provide(KafkaRelay.layer(relay)))
}

const captured = () => {
  const lines: Array<string> = []
  const logger = Logger.layer([Logger.make(({ message }) => void lines.push([message].flat().map(String).join(" ")))])
  return { lines, logger }
}

const infrastructure = Layer.provideMerge(Layer.provideMerge(MemoryBroker.layer(), database), VirtualClock.layer)

/** The broker denies writing to the topic while the right is missing. */
const withoutRight = (topic: string, isMissing: () => boolean) => (broker: Broker.Broker["Service"]) => ({
  ...broker,
  producer: (options?: Broker.ProducerOptions) =>
    Effect.map(broker.producer(options), (producer) => ({
      ...producer,
      send: (record: Parameters<typeof producer.send>[0]) =>
        isMissing() && record.topic === topic
          ? Effect.fail(new BrokerError.AuthorizationFailed({ resource: "topic", name: topic, operation: "write to" }))
          : producer.send(record)
    }))
})

describe("C39 relay to a topic that does not exist yet", () => {
  for (const [name, shape] of Object.entries(shapes)) {
    it.effect(
      `ruling 87, ${name}: the events wait without an attempt, others go on, log and health say so, and it heals`,
      () => {
        const { lines, logger } = captured()
        return Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("there")
          yield* Effect.gen(function* () {
            yield* write("later", 10)
            yield* Effect.sleep("2 seconds")
            const first = lines.filter((line) => line.includes("topic 'later'"))
            assert.strictEqual(first.length, 1, lines.join("\n"))
            assert.include(first[0], "does not exist")
            yield* write("there", 10)
            yield* Effect.sleep("1 second")
            assert.strictEqual((yield* idsIn("there")).length, 10)
            yield* Effect.sleep("597 seconds")
            assert.deepStrictEqual(yield* states, new Set(["later NEW 0", "there DONE 0"]))
            const during = yield* health
            assert.strictEqual(during.status, "degraded")
            assert.deepInclude(during.problems.find(({ source }) => source === "destination")!, {
              name: "topic 'later'"
            })
            yield* memory.createTopic("later")
            yield* Effect.sleep("25 seconds")
            assert.deepStrictEqual(yield* states, new Set(["later DONE 0", "there DONE 0"]))
            const ids = yield* idsIn("later")
            assert.strictEqual(new Set(ids).size, 10)
            if (name.startsWith("ordered")) {
              for (const aggregate of [0, 1, 2]) {
                const own = ids.filter((id) => Number(id!.split(" ")[1]) % 3 === aggregate)
                assert.deepStrictEqual(
                  own,
                  own.toSorted((a, b) => Number(a!.slice(6)) - Number(b!.slice(6)))
                )
              }
            }
            const after = yield* health
            assert.strictEqual(after.status, "up", after.detail)
            assert.deepStrictEqual(after.problems, [])
          }).pipe(Effect.provide(shape({})))
          // One line at once, and then at most one a minute.
          assert.isAtMost(lines.filter((line) => line.includes("topic 'later'")).length, 11)
        }).pipe(Effect.provide(Layer.provideMerge(infrastructure, logger)))
      }
    )
  }

  it.effect("ruling 87: a topic without the right to write is like a missing one", () => {
    let isMissing = true
    return Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      for (const topic of ["later", "there"]) yield* memory.createTopic(topic)
      yield* Effect.gen(function* () {
        yield* write("later", 10)
        yield* write("there", 10)
        yield* Effect.sleep("60 seconds")
        assert.deepStrictEqual(yield* states, new Set(["later NEW 0", "there DONE 0"]))
        isMissing = false
        yield* Effect.sleep("25 seconds")
        assert.deepStrictEqual(yield* states, new Set(["later DONE 0", "there DONE 0"]))
      }).pipe(
        Effect.provide(
          shapes.singleNode({}).pipe(
            Layer.provide(
              Layer.effect(
                Broker.Broker,
                Effect.map(
                  Broker.Broker,
                  withoutRight("later", () => isMissing)
                )
              )
            )
          )
        )
      )
    }).pipe(Effect.provide(Layer.provideMerge(infrastructure, Logger.layer([]))))
  })

  it.effect("ruling 87: `create` makes the topic with the cluster's defaults, with one request", () => {
    let requests = 0
    const counting = (broker: Broker.Broker["Service"]): Broker.Broker["Service"] => ({
      ...broker,
      admin: Effect.map(broker.admin, (admin) => ({
        ...admin,
        createTopics: (topics) =>
          Effect.andThen(
            Effect.sync(() => void requests++),
            admin.createTopics(topics)
          )
      }))
    })
    return Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* Effect.gen(function* () {
        yield* write("later", 200)
        yield* Effect.sleep("2 seconds")
        assert.deepStrictEqual(yield* states, new Set(["later DONE 0"]))
        const logs = yield* Effect.forEach([0, 1, 2, 3], (partition) => memory.log("later", partition))
        assert.strictEqual(logs.flat().length, 200)
        assert.strictEqual(requests, 1)
      }).pipe(
        Effect.provide(
          shapes
            .orderedNodes({ missingTopics: "create" })
            .pipe(Layer.provide(Layer.effect(Broker.Broker, Effect.map(Broker.Broker, counting))))
        )
      )
    }).pipe(
      Effect.provide(
        Layer.provideMerge(
          Layer.provideMerge(MemoryBroker.layer({ defaultPartitions: 4 }), database),
          Layer.provideMerge(VirtualClock.layer, Logger.layer([]))
        )
      )
    )
  })

  it.effect("ruling 87: `require` refuses to start without the topics that are known, and names the first", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("there")
      const build = (topic: KafkaRelay.KafkaRelayOptions["topic"]) =>
        Effect.scoped(
          Layer.build(KafkaRelay.layer({ missingTopics: "require", ...(topic === undefined ? {} : { topic }) }))
        )
      for (const topic of [
        "later",
        new Map([
          ["a", "there"],
          ["b", "later"]
        ])
      ]) {
        const error = yield* Effect.flip(build(topic))
        assert.strictEqual(error._tag, "UnknownTopic")
        assert.include(error.message, "'later'")
      }
      yield* build("there")
      yield* build(undefined)
    }).pipe(Effect.provide(infrastructure))
  )
})
