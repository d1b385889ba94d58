/** A schema of its own for a test file on PostgreSQL, with the outbox tables and a table of orders. */
import { outboxStatements } from "@eventbus/node/outbox"
import { Effect } from "effect"
import pg from "pg"
import { afterAll, beforeAll } from "vitest"
import { pgLogin, postgresService } from "../../../../test/outbox/clients.ts"
import { freshName } from "../../../../test/outbox/databases.ts"
import { problemOf, urlOf } from "../../../../test/services/login.ts"

/** Why PostgreSQL cannot be used. undefined when it can. */
export const postgresProblem = await problemOf(
  postgresService,
  Effect.promise(async () => {
    const client = new pg.Client(urlOf("postgres", pgLogin))
    await client.connect()
    await client.end()
  })
)

/** A row of the outbox as tests look at it. */
export interface Row {
  readonly event_id: string
  readonly event_type: string
  readonly aggregate_id: string | null
  readonly tenant_id: string | null
  readonly payload: Buffer
  readonly content_type: string
  readonly headers: string | null
}

export interface Schema {
  readonly name: string
  readonly url: string
  readonly pool: pg.Pool
  readonly rows: () => Promise<ReadonlyArray<Row>>
  readonly orders: () => Promise<ReadonlyArray<string>>
  readonly empty: () => Promise<void>
}

/** Creates the schema before the tests of the file, and drops it behind them. */
export const schemaOfFile = (): Schema => {
  const name = freshName()
  const url = urlOf("postgres", pgLogin, `?options=${encodeURIComponent(`-c search_path=${name}`)}`)
  const pool = new pg.Pool({ connectionString: url })
  beforeAll(async () => {
    if (postgresProblem !== undefined) return
    await pool.query(`CREATE SCHEMA ${name}`)
    for (const statement of outboxStatements("pg")) await pool.query(statement)
    await pool.query("CREATE TABLE orders (id text PRIMARY KEY)")
  })
  afterAll(async () => {
    if (postgresProblem === undefined) await pool.query(`DROP SCHEMA ${name} CASCADE`)
    await pool.end()
  })
  return {
    name,
    url,
    pool,
    rows: async () => (await pool.query<Row>("SELECT * FROM outbox_event ORDER BY seq")).rows,
    orders: async () => (await pool.query("SELECT id FROM orders ORDER BY id")).rows.map(({ id }) => id),
    empty: async () => {
      await pool.query("DELETE FROM outbox_event")
      await pool.query("DELETE FROM orders")
    }
  }
}
