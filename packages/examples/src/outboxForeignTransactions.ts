/**
 * Transactions that Effect does not own: plain `pg`, the tagged template of `postgres`, and Kysely. Each writes its event through
 * `TxContext.join`, on the connection that holds the transaction.
 *
 *   DATABASE_URL=postgres://… node packages/examples/src/outboxForeignTransactions.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { PgClient } from "@effect/sql-pg"
import { ListenerRegistry, Outbox, OutboxSchema, type OutboxWriter, TxContext } from "@eventbus/outbox"
import { Config, Console, Effect, Layer, ManagedRuntime, Redacted } from "effect"
import { CompiledQuery, Kysely, PostgresDialect, type Transaction } from "kysely"
import pg from "pg"
import postgres from "postgres"

interface Tables {
  readonly orders: { readonly id: string }
}

/** The bridge of an application without Effect: it runs an Effect and gets a Promise. */
type Run = <A, E>(effect: Effect.Effect<A, E, OutboxWriter.OutboxWriter>) => Promise<A>

const event = (id: string) =>
  Outbox.write({ eventType: "OrderPlaced", aggregateType: "order", aggregateId: id, payload: { id } })

/** A client of `pg`, and so too Drizzle over one: the connection is in the caller's hands. */
const withPg = async (pool: pg.Pool, run: Run, id: string, ending: "COMMIT" | "ROLLBACK") => {
  const client = await pool.connect()
  const joined = TxContext.join((text, params) => client.query(text, [...params]))
  try {
    await client.query("BEGIN")
    await client.query("INSERT INTO orders (id) VALUES ($1)", [id])
    await run(joined.run(event(id)))
    await client.query(ending)
  } finally {
    client.release()
  }
  // This fires the hot path. Without it, the poller delivers later.
  await run(ending === "COMMIT" ? joined.committed : joined.rolledBack)
}

/** A tagged template. */
const withPostgres = async (sql: postgres.Sql, run: Run, id: string) => {
  const committed = await sql.begin(async (tx) => {
    const joined = TxContext.join((text, params) => tx.unsafe(text, params as Array<string>))
    await tx`INSERT INTO orders (id) VALUES (${id})`
    await run(joined.run(event(id)))
    return joined.committed
  })
  await run(committed)
}

/** A query builder. */
const withKysely = async (db: Kysely<Tables>, run: Run, id: string) => {
  const committed = await db.transaction().execute(async (tx: Transaction<Tables>) => {
    const joined = TxContext.join((text, params) => tx.executeQuery(CompiledQuery.raw(text, [...params])))
    await tx.insertInto("orders").values({ id }).execute()
    await run(joined.run(event(id)))
    return joined.committed
  })
  await run(committed)
}

const application = async (url: string, run: Run) => {
  const pool = new pg.Pool({ connectionString: url })
  const sql = postgres(url, { onnotice: () => {} })
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  try {
    await pool.query("CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY)")
    await withPg(pool, run, `pg-${Date.now()}`, "COMMIT")
    await withPg(pool, run, `undone-${Date.now()}`, "ROLLBACK")
    await withPostgres(sql, run, `postgres-${Date.now()}`)
    await withKysely(db, run, `kysely-${Date.now()}`)
  } finally {
    await sql.end()
    await db.destroy()
  }
}

const Listeners = ListenerRegistry.layerAll((event) => Console.log(`placed ${event.aggregateId?.replace(/-\d+$/, "")}`))

const program = Effect.gen(function* () {
  const url = yield* Config.Redacted("DATABASE_URL")
  const layer = Outbox.singleNode().pipe(
    Layer.provide(Listeners),
    Layer.provide(Layer.effectDiscard(OutboxSchema.migrate())),
    Layer.provide(PgClient.layer({ url }))
  )
  const runtime = yield* Effect.acquireRelease(
    Effect.sync(() => ManagedRuntime.make(layer)),
    (runtime) => runtime.disposeEffect
  )
  yield* Effect.promise(() => application(Redacted.value(url), (effect) => runtime.runPromise(effect)))
})

program.pipe(Effect.scoped, NodeRuntime.runMain)
