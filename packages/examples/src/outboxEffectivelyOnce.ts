/**
 * Outbox, Kafka, handler: each order is billed once, wherever the process is killed. It writes its orders unless they are there, waits until
 * all of them are billed, and may be started again at any time.
 *
 *   KAFKA_BROKERS=… DATABASE_URL=postgres://… KILL_AT=published node packages/examples/src/outboxEffectivelyOnce.ts
 *
 * `KILL_AT` is one of the steps in `outboxSteps.ts`. Without the other two it runs inside this process, and then a kill forgets everything.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, Route, Serde } from "@eventbus/core"
import { Inbox, ListenerRegistry, Outbox, OutboxSchema } from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import { Config, Console, Effect, Layer, Option, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import * as Kafka from "./kafka.ts"
import * as Database from "./outboxDatabase.ts"
import * as Steps from "./outboxSteps.ts"

const Order = Schema.Struct({ id: Schema.String, cents: Schema.Int })
const orders = Array.from({ length: 5 }, (_, n) => ({ id: `o-${n + 1}`, cents: 100 * (n + 1) }))

const Tables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS orders (id VARCHAR(40) PRIMARY KEY)`
  yield* sql`CREATE TABLE IF NOT EXISTS account (name VARCHAR(40) PRIMARY KEY, orders INTEGER NOT NULL, cents INTEGER NOT NULL)`
  yield* sql`INSERT INTO account (name, orders, cents) VALUES ('shop', 0, 0) ON CONFLICT DO NOTHING`
  yield* OutboxSchema.migrate()
  yield* Inbox.migrate()
})

/** 1. The order and its event, in one transaction. The order's id makes it safe to ask again. */
const place = Effect.fnUntraced(function* (order: typeof Order.Type) {
  const sql = yield* SqlClient.SqlClient
  const write = Effect.gen(function* () {
    const known = yield* sql`SELECT 1 FROM orders WHERE id = ${order.id}`
    if (known.length > 0) return
    yield* sql`INSERT INTO orders (id) VALUES (${order.id})`
    yield* Steps.reached("inserted")
    yield* Outbox.write({
      eventType: "OrderPlaced",
      eventId: order.id,
      aggregateType: "order",
      aggregateId: order.id,
      payload: order
    })
    yield* Steps.reached("written")
  })
  yield* sql.withTransaction(write)
  yield* Steps.reached("committed")
})

/** 2. Every event to Kafka: acknowledged first, finished then. A kill in between sends it twice. */
const relayTo = (topic: string) =>
  Layer.unwrap(
    Effect.map(KafkaRelay.listener({ topic }), (relay) =>
      ListenerRegistry.layerAll((event) =>
        Steps.reached("relaying").pipe(Effect.andThen(relay(event)), Effect.andThen(Steps.reached("published")))
      )
    )
  )

/** 3. Adding to an account is not idempotent; the inbox makes it so. It remembers the event in the transaction that adds. */
const bill = Effect.fnUntraced(function* (eventId: string, { cents }: typeof Order.Type) {
  const sql = yield* SqlClient.SqlClient
  const inbox = yield* Inbox.Inbox
  const add = sql`UPDATE account SET orders = orders + 1, cents = cents + ${cents} WHERE name = 'shop'`
  yield* Steps.reached("delivered")
  const first = yield* inbox.once("billing", eventId)(Effect.andThen(add, Steps.reached("billed")))
  yield* Steps.reached("handled")
  yield* Console.log(Option.isSome(first) ? `billed ${eventId}` : `${eventId} had been billed already`)
})

const billing = (topic: string) =>
  Binding.make("billing", {
    topic,
    groupId: `billing-${topic}`,
    value: Serde.json(Order),
    sessionTimeout: "6 seconds", // a killed member holds its partitions for as long
    heartbeatInterval: "1 second",
    onError: { OutboxStoreError: Route.retry, SqlError: Route.retry },
    handler: ({ value, record }) => bill(KafkaRelay.eventIdOf(record) ?? value.id, value)
  })

const Main = Layer.unwrap(
  Effect.gen(function* () {
    const topic = yield* Config.withDefault(Config.String("TOPIC"), "orders")
    const relay = Outbox.orderedNodes({
      ...KafkaRelay.orderedSettings,
      interval: "1 second",
      leases: { lease: "2 seconds" } // a killed relay holds its events back for as long
    })
    return Layer.mergeAll(relay.pipe(Layer.provide(relayTo(topic))), Binding.layer(billing(topic))).pipe(
      Layer.provide(Inbox.layer()),
      Layer.provide(Layer.effectDiscard(Tables)),
      Layer.provide(Kafka.layer(topic, [])),
      Layer.provideMerge(Database.layer)
    )
  })
)

const account = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ orders: number; cents: number }>`SELECT orders, cents FROM account WHERE name = 'shop'`
  return row ?? { orders: 0, cents: 0 }
})

const program = Effect.gen(function* () {
  yield* Effect.forEach(orders, place)
  yield* account.pipe(
    Effect.repeat({ until: (found) => found.orders >= orders.length, schedule: Schedule.spaced("100 millis") })
  )
  // Time for whatever comes a second time.
  yield* Effect.sleep("2 seconds")
  const total = yield* account
  yield* Console.log(`${total.orders} orders, ${total.cents} cents`)
})

program.pipe(Effect.provide(Main), NodeRuntime.runMain)
