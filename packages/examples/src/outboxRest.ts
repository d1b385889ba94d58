/**
 * A REST service: `POST /orders` answers when the order and its event are committed; the mail follows.
 *
 *   PORT=3000 node packages/examples/src/outboxRest.ts
 *   curl -d '{"id":"o-1","cents":1250}' -H 'content-type: application/json' localhost:3000/orders
 *   curl localhost:3000/orders/o-1
 *   curl localhost:3000/health
 */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { ListenerRegistry, Outbox, OutboxHealth, OutboxSchema } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Config, Console, Effect, Layer, Schema } from "effect"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { SqlClient } from "effect/sql"

const Order = Schema.Struct({ id: Schema.String, cents: Schema.Int })

interface Row {
  readonly id: string
  readonly cents: number
  readonly mails: number
}

const Tables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE orders (id TEXT PRIMARY KEY, cents INTEGER NOT NULL, mails INTEGER NOT NULL DEFAULT 0)`
  yield* OutboxSchema.migrate()
})

const Listeners = Layer.unwrap(
  Effect.map(SqlClient.SqlClient, (sql) =>
    ListenerRegistry.layer([
      ListenerRegistry.on(
        "order",
        "OrderPlaced",
        (event) => sql`UPDATE orders SET mails = mails + 1 WHERE id = ${event.aggregateId}`
      )
    ])
  )
)

const place = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const order = yield* HttpServerRequest.schemaBodyJson(Order)
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`INSERT INTO orders (id, cents) VALUES (${order.id}, ${order.cents})`
      yield* Outbox.write({ eventType: "OrderPlaced", aggregateType: "order", aggregateId: order.id, payload: order })
    })
  )
  return HttpServerResponse.empty({ status: 201 })
}).pipe(
  Effect.catchTags({
    SchemaError: ({ message }) => Effect.succeed(HttpServerResponse.text(message, { status: 400 })),
    SqlError: () => Effect.succeed(HttpServerResponse.empty({ status: 409 }))
  })
)

const show = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { id } = yield* HttpRouter.params
  const [row] = yield* sql<Row>`SELECT id, cents, mails FROM orders WHERE id = ${id}`
  return row === undefined ? HttpServerResponse.empty({ status: 404 }) : HttpServerResponse.jsonUnsafe(row)
})

const health = Effect.gen(function* () {
  const report = yield* (yield* OutboxHealth.OutboxHealth).check
  return HttpServerResponse.jsonUnsafe(report, { status: report.status === "down" ? 503 : 200 })
})

const Routes = HttpRouter.addAll([
  HttpRouter.route("POST", "/orders", place),
  HttpRouter.route("GET", "/orders/:id", show),
  HttpRouter.route("GET", "/health", health)
])

const Announced = HttpServer.HttpServer.use(({ address }) =>
  Console.log(address._tag === "UnixPathAddress" ? "listening" : `listening on port ${address.port}`)
)

const Server = Layer.effectDiscard(Announced).pipe(
  Layer.provideMerge(HttpRouter.serve(Routes, { disableLogger: true, disableListenLog: true })),
  Layer.provide(NodeHttpServer.layerConfig(createServer, { port: Config.withDefault(Config.Int("PORT"), 3000) }))
)

// The server is built on the outbox, so it stops first: what its last requests wrote is still delivered.
const Main = Server.pipe(
  Layer.provide(Outbox.singleNode()),
  Layer.provide(Listeners),
  Layer.provide(Layer.effectDiscard(Tables)),
  Layer.provide(NodeSqlite.layer({ filename: ":memory:" }))
)

NodeRuntime.runMain(Layer.launch(Main))
