/** Outbox, real Kafka and inbox, with kill -9 of the relay and of the consumer: every event takes effect once, in order. */
import { assert, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Inbox, OutboxSchema, OutboxStore } from "@eventbus/outbox"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as Transport from "../transport.ts"
import { pgIn } from "./clients.ts"
import { skipPostgres } from "./databases.ts"
import { insert, namedSchema, perAggregate, startProcess } from "./processes.ts"

const handled = SqlClient.SqlClient.use((sql) =>
  Effect.map(sql<{ event_id: string }>`SELECT event_id FROM handled ORDER BY n`, (rows) =>
    rows.map((row) => row.event_id)
  )
)

KafkaSuite.shared("outbox to Kafka to inbox", (bootstrap) => {
  it.live.skipIf(skipPostgres)(
    "OUT-K-01 OUT-K-02 OUT-K-03: each event takes effect once, despite kill -9 of the relay and of the consumer",
    () =>
      Effect.gen(function* () {
        const schema = yield* namedSchema
        const topic = `outbox-${schema.replaceAll("_", "-")}`
        const broker = yield* Broker.Broker
        const admin = yield* broker.admin
        yield* admin.createTopics([{ topic, partitions: 3 }])
        yield* Effect.addFinalizer(() => Effect.ignore(admin.deleteTopics([topic])))
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* sql`CREATE TABLE handled (n bigserial, event_id text)`
          const ids = Array.from({ length: 1500 }, (_, i) => `a${i % 20}/${i}`)
          const args = [schema, topic, bootstrap.join(",")]
          const relay = yield* startProcess("relay", ...args, "A")
          const consumer = yield* startProcess("consumer", ...args, "A")
          yield* Effect.sleep("2 seconds")
          yield* insert(ids.slice(0, 1000))
          const reached = (count: number) =>
            Effect.sleep("20 millis").pipe(
              Effect.andThen(handled),
              Effect.repeat({ until: (found) => found.length >= count }),
              Effect.timeout("90 seconds")
            )
          yield* reached(100)
          relay.kill("SIGKILL")
          yield* startProcess("relay", ...args, "B")
          yield* reached(400)
          consumer.kill("SIGKILL")
          yield* startProcess("consumer", ...args, "B")
          yield* insert(ids.slice(1000))
          yield* reached(1500)
          yield* Effect.sleep("1 second")
          const all = yield* handled
          assert.strictEqual(all.length, 1500)
          assert.deepStrictEqual(perAggregate(all), perAggregate(ids))
        }).pipe(
          Effect.provide(
            Layer.provideMerge(
              Layer.orDie(OutboxStore.layer()),
              Layer.effectDiscard(Effect.orDie(Effect.andThen(OutboxSchema.migrate(), Inbox.migrate()))).pipe(
                Layer.provideMerge(pgIn(schema))
              )
            )
          )
        )
      }).pipe(Effect.scoped, Effect.provide(Transport.layer({ brokers: bootstrap }))),
    240_000
  )
})
