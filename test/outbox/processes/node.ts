/**
 * One node of an outbox as a process of its own: `node.ts <schema> <shape> <name>`. Every delivery is a row in table `delivered`,
 * committed on its own, so that a killed process leaves a trace of what it had done.
 */
import { ListenerRegistry, Outbox } from "@eventbus/outbox"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { pgIn } from "../clients.ts"

const [schema = "", shape = "", name = ""] = process.argv.slice(2)

const database = pgIn(schema)

const registry = Layer.unwrap(
  Effect.map(SqlClient.SqlClient, (sql) =>
    ListenerRegistry.layerAll((event) =>
      Effect.andThen(
        sql`INSERT INTO delivered (event_id, node) VALUES (${event.eventId}, ${name})`,
        Effect.sleep("5 millis")
      )
    )
  )
)

const shapes = {
  ordered: Outbox.orderedNodes({ leases: { owner: name, lease: "2 seconds" }, workerCount: 4, interval: "200 millis" }),
  multi: Outbox.multiNode({
    claimLocking: { owner: name, lockTimeout: "2 seconds" },
    workerCount: 4,
    interval: "200 millis",
    batchSize: 20
  })
}

const node = (shape === "ordered" ? shapes.ordered : shapes.multi).pipe(
  Layer.provide(registry),
  Layer.provide(database)
)
await Effect.runPromise(Effect.orDie(Layer.launch(Layer.tap(node, () => Effect.sync(() => console.log("ready"))))))
