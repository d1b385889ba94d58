/**
 * Two databases in one process, each with an outbox of its own: a transaction joins the outbox of its database and no other.
 *
 *   node packages/examples/src/outboxTwoDatabases.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { ListenerRegistry, MetricsExporter, Outbox, OutboxSchema } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Console, Effect, Layer, ManagedRuntime } from "effect"
import { SqlClient } from "effect/sql"

/** Everything of one database. `Layer.fresh` builds the same services twice and shares nothing. */
const databaseOf = (name: string) => {
  const Listeners = ListenerRegistry.layerAll((event) =>
    Console.log(`${name}: ${event.eventType} ${event.aggregateId}`)
  )
  return Outbox.singleNode().pipe(
    Layer.provide(Listeners),
    Layer.provide(MetricsExporter.layer(`${name}.outbox`)),
    Layer.provide(Layer.effectDiscard(OutboxSchema.migrate())),
    Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" })),
    Layer.fresh
  )
}

const write = (eventType: string, aggregateId: string) =>
  SqlClient.SqlClient.use((sql) => sql.withTransaction(Outbox.write({ eventType, aggregateId, payload: {} })))

const runtimeOf = (name: string) =>
  Effect.acquireRelease(
    Effect.sync(() => ManagedRuntime.make(databaseOf(name))),
    (runtime) => runtime.disposeEffect
  )

const program = Effect.gen(function* () {
  const shop = yield* runtimeOf("shop")
  const crm = yield* runtimeOf("crm")
  yield* Effect.promise(() => shop.runPromise(write("OrderPlaced", "o-1")))
  yield* Effect.promise(() => crm.runPromise(write("CustomerMoved", "ann")))
  yield* Effect.promise(() => shop.runPromise(write("OrderPaid", "o-1")))
})

program.pipe(Effect.scoped, NodeRuntime.runMain)
