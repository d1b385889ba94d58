/**
 * The outbox at its smallest: an embedded database, a transaction, a listener in the same process. No Kafka, no framework.
 *
 *   node packages/examples/src/outboxEmbedded.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { ListenerRegistry, Outbox, OutboxSchema } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Console, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"

const Tables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE orders (id TEXT PRIMARY KEY, cents INTEGER NOT NULL CHECK (cents > 0))`
  yield* OutboxSchema.migrate()
})

const Listeners = ListenerRegistry.layer([
  ListenerRegistry.on("order", "OrderPlaced", (event) => Console.log(`a mail goes out about ${event.aggregateId}`))
])

// Closing the layer delivers what is queued, within `drainTimeout`.
const Main = Outbox.singleNode().pipe(
  Layer.provide(Listeners),
  Layer.provide(Layer.effectDiscard(Tables)),
  Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" }))
)

/** The event first: a row that fails afterwards takes it back. */
const place = Effect.fnUntraced(function* (id: string, cents: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* Outbox.write({ eventType: "OrderPlaced", aggregateType: "order", aggregateId: id, payload: { id, cents } })
      yield* sql`INSERT INTO orders (id, cents) VALUES (${id}, ${cents})`
    })
  )
})

const program = Effect.gen(function* () {
  yield* place("o-1", 1250)
  yield* place("o-2", -5).pipe(Effect.catchTag("SqlError", () => Console.log("o-2 is refused: no order, no mail")))
  yield* place("o-3", 300)
})

program.pipe(Effect.provide(Main), NodeRuntime.runMain)
