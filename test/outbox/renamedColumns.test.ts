/** A client that renames result columns, as applications with camel case names have it, makes no difference to the outbox. */
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { DeadEventManager, ListenerRegistry, Outbox, OutboxError, OutboxHealth, OutboxSchema } from "@eventbus/outbox"
import { Deferred, Effect, Layer, String } from "effect"
import { SqlClient } from "effect/sql"
import { pgLogin } from "./clients.ts"
import { onDatabases } from "./databases.ts"

const shapes = {
  singleNode: Outbox.singleNode(),
  multiNode: Outbox.multiNode({ claimLocking: { lockTimeout: "1 minute" } }),
  ordered: Outbox.ordered(),
  orderedNodes: Outbox.orderedNodes()
}

onDatabases(
  "a client with transformResultNames",
  (db) => {
    /** The schema of a plain client, seen through one that renames. */
    const renaming = Layer.unwrap(
      SqlClient.SqlClient.use((sql) =>
        Effect.map(sql<{ schema: string }>`SELECT current_schema() AS schema`, ([row]) =>
          PgClient.layer({
            ...pgLogin,
            maxConnections: 6,
            startupOptions: `-c search_path=${row!.schema}`,
            transformResultNames: String.snakeToCamel,
            transformQueryNames: String.camelToSnake
          })
        )
      )
    ).pipe(Layer.provide(db.empty), Layer.fresh)

    for (const [name, shape] of Object.entries(shapes)) {
      it.live(`OUT-B-01 OUT-O-01 ${name}: events of another process are delivered, and dead events are listed`, () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* OutboxSchema.migrate()
          yield* Outbox.write({ eventType: "poison", eventId: "p", payload: 1 }).pipe(
            Effect.andThen(Outbox.write({ eventType: "good", eventId: "g", aggregateId: "7", payload: { a: 1 } })),
            sql.withTransaction,
            Effect.provide(Outbox.writerOnly())
          )
          const delivered = yield* Deferred.make<string>()
          const listeners = ListenerRegistry.layerAll((event) =>
            event.eventType === "poison"
              ? Effect.fail(new OutboxError.PoisonEvent({ reason: "never" }))
              : Deferred.succeed(delivered, `${event.eventId} of ${event.aggregateId}`)
          )
          yield* Effect.gen(function* () {
            assert.strictEqual(yield* Deferred.await(delivered), "g of 7")
            const dead = yield* DeadEventManager.DeadEventManager
            const health = yield* OutboxHealth.OutboxHealth
            while ((yield* dead.count()) === 0) yield* Effect.sleep("10 millis")
            assert.deepStrictEqual(
              (yield* dead.query()).map((event) => event.eventId),
              ["p"]
            )
            assert.strictEqual((yield* health.check).dead, 1)
          }).pipe(Effect.provide(shape.pipe(Layer.provide(listeners))))
        }).pipe(Effect.provide(renaming))
      )
    }
  },
  ["PostgreSQL"]
)
