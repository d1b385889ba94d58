/** The SQL clients for PostgreSQL that `outbox.write` works with, each with a transaction of its own kind. */
import type { OutboxTransaction } from "@eventbus/node/outbox"
import { sql } from "drizzle-orm"
import { drizzle } from "drizzle-orm/node-postgres"
import knex from "knex"
import { Kysely, PostgresDialect } from "kysely"
import type pg from "pg"
import postgres from "postgres"
import { DataSource, EntitySchema } from "typeorm"
import type { Schema } from "./postgres.ts"
import { prismaOn } from "./prisma.ts"

/** An order is inserted by the client's own means, and the event by `write`. */
export type Work = (tx: OutboxTransaction, insertOrder: (id: string) => PromiseLike<unknown>) => Promise<void>

export interface Client {
  /** Runs the work in a transaction, which is rolled back when the work rejects. */
  readonly transaction: (work: Work) => Promise<unknown>
  /** The client itself, or its pool: no transaction. */
  readonly outside: unknown
  readonly close: () => Promise<unknown>
}

const insert = "INSERT INTO orders (id) VALUES ($1)"

const withPg = ({ pool }: Schema): Client => ({
  transaction: async (work) => {
    const client: pg.PoolClient = await pool.connect()
    try {
      await client.query("BEGIN")
      await work(client, (id) => client.query(insert, [id]))
      await client.query("COMMIT")
    } catch (error) {
      await client.query("ROLLBACK")
      throw error
    } finally {
      client.release()
    }
  },
  outside: pool,
  close: async () => undefined
})

const withKysely = ({ pool }: Schema): Client => {
  const db = new Kysely<{ readonly orders: { readonly id: string } }>({ dialect: new PostgresDialect({ pool }) })
  const transaction = (work: Work) =>
    db.transaction().execute((trx) => work(trx, (id) => trx.insertInto("orders").values({ id }).execute()))
  return { transaction, outside: db, close: async () => undefined }
}

const withDrizzle = ({ pool }: Schema): Client => {
  const db = drizzle(pool)
  const transaction = (work: Work) =>
    db.transaction((tx) => work(tx, (id) => tx.execute(sql`INSERT INTO orders (id) VALUES (${id})`)))
  return { transaction, outside: db, close: async () => undefined }
}

const withPrisma = ({ url }: Schema): Client => {
  const prisma = prismaOn(url)
  const transaction = (work: Work) => prisma.$transaction((tx) => work(tx, (id) => tx.$executeRawUnsafe(insert, id)))
  return { transaction, outside: prisma, close: () => prisma.$disconnect() }
}

const withPostgresJs = ({ url }: Schema): Client => {
  const sql = postgres(url, { onnotice: () => {} })
  const transaction = (work: Work) => sql.begin((tx) => work(tx, (id) => tx`INSERT INTO orders (id) VALUES (${id})`))
  return { transaction, outside: sql, close: () => sql.end() }
}

const withKnex = ({ url }: Schema): Client => {
  const db = knex({ client: "pg", connection: url })
  const transaction = (work: Work) => db.transaction((trx) => work(trx, (id) => trx("orders").insert({ id })))
  return { transaction, outside: db, close: () => db.destroy() }
}

const orders = new EntitySchema<{ readonly id: string }>({
  name: "orders",
  columns: { id: { type: "text", primary: true } }
})

const withTypeOrm = ({ url }: Schema): Client => {
  const source = new DataSource({ type: "postgres", url, entities: [orders] })
  const transaction = async (work: Work) => {
    if (!source.isInitialized) await source.initialize()
    return source.transaction((manager) => work(manager, (id) => manager.insert(orders, { id })))
  }
  // Its manager looks like that of a transaction, and takes any connection.
  return { transaction, outside: source.manager, close: () => source.destroy() }
}

/** The plain seam: a function over whatever client. */
const withFunction = (schema: Schema): Client => ({
  ...withPg(schema),
  transaction: (work) =>
    withPg(schema).transaction((tx, insertOrder) =>
      work((text, params) => (tx as pg.PoolClient).query(text, [...params]), insertOrder)
    ),
  outside: (text: string, params: ReadonlyArray<unknown>) => schema.pool.query(text, [...params])
})

export const clients: { readonly [name: string]: (schema: Schema) => Client } = {
  pg: withPg,
  Kysely: withKysely,
  Drizzle: withDrizzle,
  Prisma: withPrisma,
  "postgres.js": withPostgresJs,
  Knex: withKnex,
  TypeORM: withTypeOrm,
  "a function": withFunction
}
