/**
 * Where the demo's orders come from: a checkout that writes each order and its event in one SQL transaction, and the relay that brings what
 * was committed to Kafka. On the database that `DATABASE_URL` (postgres://…) names, else on SQLite inside this process.
 */
import { PgClient } from "@effect/sql-pg"
import type { Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import {
  ListenerRegistry,
  Outbox,
  type OutboxError,
  OutboxHealth,
  OutboxSchema,
  type OutboxWriter
} from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Config, Context, Effect, Layer, Option, Redacted, Schedule, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Cluster } from "./cluster.ts"

/** An order as the checkout receives it. */
export interface Arrival {
  readonly id: string
  /** Orders of one customer stay in order. */
  readonly customer: string
  readonly body: string
}

/** The customer cancels in the middle of the transaction. */
export class ChangedTheirMind extends Schema.TaggedError<ChangedTheirMind>()("ChangedTheirMind", {}) {}

export class NoDatabase extends Schema.TaggedError<NoDatabase>()("NoDatabase", { detail: Schema.String }) {
  override get message(): string {
    return `DATABASE_URL: ${this.detail}`
  }
}

export class Checkout extends Context.Service<
  Checkout,
  {
    /** Name of the database, for the screen. */
    readonly database: string
    /** Commits the order together with its event. Kafka is not involved here. */
    readonly place: (order: Arrival) => Effect.Effect<void>
    /** Writes both and rolls back, so that neither the order nor its event exists. */
    readonly abandon: (order: Arrival) => Effect.Effect<void>
    /** A customer whose orders go to the partition; known after the first of their orders was published there. */
    readonly customerOf: (partition: number) => string | undefined
    /** Waits until Kafka has acknowledged every committed event. */
    readonly published: Effect.Effect<void>
    /** The orders in the database. */
    readonly committed: Effect.Effect<ReadonlySet<string>, SqlError.SqlError>
  }
>()("@eventbus/examples/demo/Checkout") {}

type Failure = Config.ConfigError | BrokerError.BrokerError | SqlError.SqlError | NoDatabase | OutboxFailure
type OutboxFailure =
  | OutboxError.InvalidIdentifier
  | OutboxError.InvalidOutboxConfig
  | OutboxError.OutboxStoreError
  | OutboxError.SchemaMismatch

type OnPublished = (id: string, metadata: ConsumerRecord.RecordMetadata) => void

/** `onPublished` receives the position of each order in its topic. */
export const layer = (onPublished: OnPublished): Layer.Layer<Checkout, Failure, Broker.Broker | Cluster> =>
  Layer.unwrap(
    Effect.map(Config.option(Config.Redacted("DATABASE_URL")), (url) =>
      Option.match(url, {
        onNone: () => on("SQLite", NodeSqlite.layer({ filename: ":memory:" }), onPublished),
        onSome: (given) => on("PostgreSQL", postgres(given), onPublished)
      })
    )
  )

const on = <E>(database: string, client: Layer.Layer<SqlClient.SqlClient, E>, onPublished: OnPublished) => {
  const customers = new Map<number, string>()
  const listeners = Effect.gen(function* () {
    const { names } = yield* Cluster
    const relay = yield* KafkaRelay.listener({ topic: names.orders })
    return ListenerRegistry.layerAll((event) =>
      Effect.map(relay(event), (metadata) => {
        customers.set(metadata.partition, event.aggregateId ?? "")
        onPublished(event.eventId, metadata)
      })
    )
  })
  return Layer.effect(Checkout, makeCheckout(database, customers)).pipe(
    Layer.provide(Outbox.orderedNodes(KafkaRelay.orderedSettings)),
    Layer.provide(Layer.unwrap(listeners)),
    Layer.provide(Layer.effectDiscard(migrate)),
    Layer.provide(client)
  )
}

const migrate = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE shop_order (id VARCHAR(40) PRIMARY KEY, customer VARCHAR(40) NOT NULL, body TEXT NOT NULL)`
  yield* OutboxSchema.migrate()
})

const makeCheckout = Effect.fnUntraced(function* (database: string, customers: ReadonlyMap<number, string>) {
  const sql = yield* SqlClient.SqlClient
  const health = yield* OutboxHealth.OutboxHealth
  const writer = yield* Effect.context<OutboxWriter.OutboxWriter>()

  /** The outbox costs its writer one more statement in the existing transaction. */
  const write = ({ id, customer, body }: Arrival) =>
    Effect.gen(function* () {
      yield* sql`INSERT INTO shop_order (id, customer, body) VALUES (${id}, ${customer}, ${body})`
      yield* Outbox.write({
        eventType: "OrderPlaced",
        eventId: id,
        aggregateType: "customer",
        aggregateId: customer,
        payloadJson: body
      })
    }).pipe(Effect.provideContext(writer))

  return Checkout.of({
    database,
    place: (order) => Effect.orDie(sql.withTransaction(write(order))),
    abandon: (order) =>
      sql.withTransaction(Effect.andThen(write(order), new ChangedTheirMind())).pipe(
        Effect.catchTag("ChangedTheirMind", () => Effect.void),
        Effect.orDie
      ),
    customerOf: (partition) => customers.get(partition),
    published: health.check.pipe(
      Effect.repeat({
        until: ({ status, pending }) => status !== "down" && pending === 0,
        schedule: Schedule.spaced("50 millis")
      }),
      Effect.asVoid
    ),
    committed: Effect.map(
      sql<{ readonly id: string }>`SELECT id FROM shop_order`,
      (rows) => new Set(rows.map(({ id }) => id))
    )
  })
})

/** A schema of this run, removed at the end. The user's own tables are not touched. */
const postgres = (url: Redacted.Redacted): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError | NoDatabase> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const parsed = URL.parse(Redacted.value(url))
      if (parsed === null || !/^postgres(ql)?:$/.test(parsed.protocol)) {
        return yield* new NoDatabase({ detail: "this demo knows postgres://user:password@host:port/database" })
      }
      const schema = `eventbus_demo_${crypto.randomUUID().slice(0, 8)}`
      const admin = yield* Layer.build(Layer.fresh(PgClient.layer({ url, maxConnections: 1 })))
      const run = (text: string) =>
        SqlClient.SqlClient.use((sql) => sql.unsafe(text)).pipe(Effect.provideContext(admin))
      yield* Effect.acquireRelease(
        Effect.mapError(
          run(`CREATE SCHEMA ${schema}`),
          ({ reason }) => new NoDatabase({ detail: `no schema can be made at ${parsed.host} (${reason._tag})` })
        ),
        () => Effect.ignore(run(`DROP SCHEMA ${schema} CASCADE`))
      )
      return Layer.fresh(PgClient.layer({ url, startupOptions: `-c search_path=${schema}` }))
    })
  )
